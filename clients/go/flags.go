// Package flags reads percentage flags from a live configuration bundle: {"new-checkout": 25} is on for a quarter of all keys.
//
// A key is always on the same side, and stays on when the percentage rises. A flag that is missing, of a wrong type or out of
// range has its default, and so have all flags of a file that is missing or no JSON.
package flags

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Buckets is the number of buckets: percentages have a resolution of a hundredth.
const Buckets = 10_000

const maxFileBytes = 1_000_000

// BucketOf returns the bucket of a key: the first 8 bytes of SHA-256 over the flag, a NUL byte and the key.
func BucketOf(flag, key string) int {
	digest := sha256.Sum256([]byte(flag + "\x00" + key))
	return int(binary.BigEndian.Uint64(digest[:8]) % Buckets)
}

// IsOn tells whether a flag with this value, as encoding/json decodes it, is on for a key.
func IsOn(value any, flag, key string, otherwise bool) bool {
	percent, ok := value.(float64)
	if !ok || !(percent >= 0 && percent <= 100) {
		return otherwise
	}
	return BucketOf(flag, key) < int(math.RoundToEven(percent*Buckets/100))
}

// Flags are the flags of one bundle, read again when its file changes. Several goroutines may use them.
type Flags struct {
	path     string
	mutex    sync.Mutex
	modified time.Time
	target   string
	values   map[string]any
}

// New returns the flags of a file, such as flags.json, of a live bundle.
func New(bundle, file string) *Flags {
	folder := os.Getenv("LIVE_CONFIG_FOLDER")
	if folder == "" {
		folder = "/etc/pinterest/live"
	}
	return &Flags{path: filepath.Join(folder, bundle, file)}
}

// IsOn tells whether a flag is on for a key, such as the id of a user.
func (f *Flags) IsOn(flag, key string, otherwise bool) bool {
	return IsOn(f.current()[flag], flag, key, otherwise)
}

func (f *Flags) current() map[string]any {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	info, err := os.Stat(f.path)
	if err != nil {
		return f.values // The last good values.
	}
	// The name of the bundle is a symbolic link to its version.
	target, _ := filepath.EvalSymlinks(f.path)
	if info.ModTime() != f.modified || target != f.target {
		f.modified, f.target = info.ModTime(), target
		if values := read(f.path); values != nil {
			f.values = values
		}
	}
	return f.values
}

// read returns nil for a file that is no JSON object, so that the last good values stay.
func read(path string) map[string]any {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil
	}
	var values map[string]any
	if json.Unmarshal(text, &values) != nil {
		return nil
	}
	return values
}
