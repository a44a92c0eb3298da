// A real OpenID provider: whoever types a name is that person, and the group is what stands before the @'s first dot.
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'

import Provider from 'oidc-provider'

const [port, key, life] = process.argv.slice(2)
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwk = { ...privateKey.export({ format: 'jwk' }), kid: key, use: 'sig', alg: 'RS256' }

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'pin',
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
      response_types: [],
      redirect_uris: [],
    },
    ...[['web', 'client_secret_basic', 'a secret: 100% + one'], ['web-public', 'none']].map(([id, method, secret]) => ({
      client_id: id,
      client_secret: secret,
      token_endpoint_auth_method: method,
      // Of a native application the port is not compared, which a test chooses for its desk.
      application_type: 'native',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: ['http://127.0.0.1/session/openid/callback'],
    })),
  ],
  jwks: { keys: [jwk] },
  cookies: { keys: ['a test'] },
  features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
  claims: { openid: ['sub'], email: ['email', 'email_verified', 'groups'] },
  conformIdTokenClaims: false,
  rotateRefreshToken: true,
  ttl: { IdToken: Number(life), AccessToken: 60, DeviceCode: 60, RefreshToken: 3600, Grant: 3600, Session: 60, Interaction: 60 },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: id, email_verified: true, groups: [id.split('@')[0].split('.')[0]] }),
  }),
})

createServer(provider.callback()).listen(Number(port), '127.0.0.1', () => console.log('ready'))
