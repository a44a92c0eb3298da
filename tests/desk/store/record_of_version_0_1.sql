BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0005');
CREATE TABLE audit (
	number INTEGER NOT NULL, 
	at TEXT NOT NULL, 
	who TEXT NOT NULL, 
	act TEXT NOT NULL, 
	project TEXT NOT NULL, 
	about TEXT NOT NULL, 
	submission TEXT NOT NULL, 
	words TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "audit" VALUES(1,'2026-01-31T12:00:00+00:00','ann','deploy: accepted by the desk','ads','PinterestService/hello','submission-1','');
INSERT INTO "audit" VALUES(2,'2026-01-31T12:00:00+00:00','ann','deploy: accepted by the platform','ads','PinterestService/hello','submission-1','');
INSERT INTO "audit" VALUES(3,'2026-01-31T12:00:00+00:00','ann','scale: accepted by the desk','ads','PinterestService/hello','submission-2','');
INSERT INTO "audit" VALUES(4,'2026-01-31T12:00:00+00:00','ann','scale: accepted by the platform','ads','PinterestService/hello','submission-2','');
INSERT INTO "audit" VALUES(5,'2026-01-31T12:00:00+00:00','ann','scale: accepted by the desk','ads','PinterestService/hello','submission-3','');
INSERT INTO "audit" VALUES(6,'2026-01-31T12:00:00+00:00','ann','delete: accepted by the desk','ads','PinterestService/hello','submission-4','');
INSERT INTO "audit" VALUES(7,'2026-01-31T12:00:00+00:00','ann','deploy: refused by the desk','ads','PinterestService/hello','submission-5','ChangedMeanwhile');
CREATE TABLE builds (
	submission TEXT NOT NULL, 
	version TEXT NOT NULL, 
	"commit" TEXT NOT NULL, 
	builder TEXT NOT NULL, 
	reviewers TEXT NOT NULL, 
	attestation TEXT NOT NULL, 
	PRIMARY KEY (submission), 
	FOREIGN KEY(submission) REFERENCES submissions (id)
);
CREATE TABLE decisions (
	submission TEXT NOT NULL, 
	judge TEXT NOT NULL, 
	at TEXT NOT NULL, 
	accepted BOOLEAN NOT NULL, 
	rule TEXT NOT NULL, 
	words TEXT NOT NULL, 
	PRIMARY KEY (submission, judge), 
	FOREIGN KEY(submission) REFERENCES submissions (id)
);
INSERT INTO "decisions" VALUES('submission-1','desk','2026-01-31T12:00:00+00:00',1,'','');
INSERT INTO "decisions" VALUES('submission-1','platform','2026-01-31T12:00:00+00:00',1,'','{"kind":"PinterestService","project":"ads","name":"hello","uid":"u-1","generation":1,"revision":1,"goal":"Ready","ready":0,"wanted":1,"image":"hello","attempt":1,"done":false,"failed":false,"reason":"Progressing","message":"","next":"","address":"","progress":{},"simulated":false}');
INSERT INTO "decisions" VALUES('submission-2','desk','2026-01-31T12:00:00+00:00',1,'','');
INSERT INTO "decisions" VALUES('submission-2','platform','2026-01-31T12:00:00+00:00',1,'','{"summary":{"kind":"PinterestService","project":"ads","name":"hello","uid":"u-1","generation":1,"revision":1,"goal":"Ready","ready":0,"wanted":1,"image":"hello","attempt":1,"done":false,"failed":false,"reason":"Progressing","message":"","next":"","address":"","progress":{},"simulated":false},"said":["hello gets 3 copies"],"written":true}');
INSERT INTO "decisions" VALUES('submission-3','desk','2026-01-31T12:00:00+00:00',1,'','');
INSERT INTO "decisions" VALUES('submission-4','desk','2026-01-31T12:00:00+00:00',1,'','');
INSERT INTO "decisions" VALUES('submission-5','desk','2026-01-31T12:00:00+00:00',0,'ChangedMeanwhile','[{"reason":"ChangedMeanwhile","detail":"it was changed meanwhile"}]');
CREATE TABLE ledger (
	cluster TEXT NOT NULL, 
	project TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	submission TEXT NOT NULL, 
	tier TEXT NOT NULL, 
	cpu BIGINT NOT NULL, 
	memory BIGINT NOT NULL, 
	gpus BIGINT NOT NULL, 
	pods BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	written BIGINT, 
	PRIMARY KEY (cluster, project, kind, name, submission)
);
INSERT INTO "ledger" VALUES('main','ads','PinterestService','hello','submission-1','on-demand',0,0,0,1,0,7);
INSERT INTO "ledger" VALUES('main','ads','PinterestService','hello','submission-2','on-demand',0,0,0,3,0,8);
INSERT INTO "ledger" VALUES('main','ads','PinterestService','hello','submission-3','on-demand',0,0,0,5,0,NULL);
CREATE TABLE outbox (
	number INTEGER NOT NULL, 
	submission TEXT NOT NULL, 
	cluster TEXT NOT NULL, 
	project TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	payload TEXT NOT NULL, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	last_error TEXT DEFAULT '' NOT NULL, 
	done_at TEXT, 
	PRIMARY KEY (number), 
	CONSTRAINT outbox_submission UNIQUE (submission), 
	FOREIGN KEY(submission) REFERENCES submissions (id)
);
INSERT INTO "outbox" VALUES(1,'submission-1','main','ads','PinterestService','hello','{"type":"Write","workload":{"metadata":{"name":"hello","namespace":"ads"},"spec":{"image":"hello","port":8080}}}',0,'','2026-01-31T12:00:00+00:00');
INSERT INTO "outbox" VALUES(2,'submission-2','main','ads','PinterestService','hello','{"type":"Edit","change":{"change":"scale","copies":3},"said":["hello gets 3 copies"]}',0,'','2026-01-31T12:00:00+00:00');
INSERT INTO "outbox" VALUES(3,'submission-3','main','ads','PinterestService','hello','{"type":"Edit","change":{"change":"scale","copies":5},"said":["hello gets 5 copies"]}',0,'',NULL);
INSERT INTO "outbox" VALUES(4,'submission-4','main','ads','PinterestService','hello','{"type":"Remove","uid":"u-1"}',0,'',NULL);
CREATE TABLE projects (
	cluster TEXT NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (cluster, name)
);
CREATE TABLE revisions (
	submission TEXT NOT NULL, 
	cluster TEXT NOT NULL, 
	project TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	at TEXT NOT NULL, 
	workload TEXT NOT NULL, 
	PRIMARY KEY (submission), 
	FOREIGN KEY(submission) REFERENCES submissions (id)
);
INSERT INTO "revisions" VALUES('submission-1','main','ads','PinterestService','hello','2026-01-31T12:00:00+00:00','{"metadata":{"name":"hello","namespace":"ads"},"spec":{"image":"hello","port":8080}}');
INSERT INTO "revisions" VALUES('submission-2','main','ads','PinterestService','hello','2026-01-31T12:00:00+00:00','{"metadata":{"name":"hello","namespace":"ads"},"spec":{"image":"hello","port":8080}}');
INSERT INTO "revisions" VALUES('submission-3','main','ads','PinterestService','hello','2026-01-31T12:00:00+00:00','{"metadata":{"name":"hello","namespace":"ads"},"spec":{"image":"hello","port":8080}}');
CREATE TABLE submissions (
	number INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	"key" TEXT, 
	who TEXT NOT NULL, 
	at TEXT NOT NULL, 
	cluster TEXT NOT NULL, 
	project TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	verb TEXT NOT NULL, 
	document TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	PRIMARY KEY (number), 
	CONSTRAINT submissions_key UNIQUE (project, who, "key"), 
	UNIQUE (id)
);
INSERT INTO "submissions" VALUES(1,'submission-1',NULL,'ann','2026-01-31T12:00:00+00:00','main','ads','PinterestService','hello','deploy','apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: hello}
spec: {image: hello, port: 8080}
','0935332869446d86c66b26b61e033425da243008d009bea40ed02d96802c84c3');
INSERT INTO "submissions" VALUES(2,'submission-2','key-2','ann','2026-01-31T12:00:00+00:00','main','ads','PinterestService','hello','scale','{"change":"scale","copies":3}','075bbaabadc6d08da8f0e7def82b42d81fc44aa3c2f6bd06e0bb0f4a8f77c109');
INSERT INTO "submissions" VALUES(3,'submission-3','key-3','ann','2026-01-31T12:00:00+00:00','main','ads','PinterestService','hello','scale','{"change":"scale","copies":5}','f5913991fd24a827db42b249fc14b22479f6f79f21e97ee4b5b9ba57cc3b7f32');
INSERT INTO "submissions" VALUES(4,'submission-4','key-4','ann','2026-01-31T12:00:00+00:00','main','ads','PinterestService','hello','delete','','a4d4f8621bc062d032ba3522e4e73d155add588dc1ff945ec3184dbd43e542bb');
INSERT INTO "submissions" VALUES(5,'submission-5','key-5','ann','2026-01-31T12:00:00+00:00','main','ads','PinterestService','hello','deploy','spec: {}','9b87878ef348e8c7d4773666e3e5cea3a3d42f7e53ec31cd5575a5a2cf3359b2');
CREATE TABLE sums (
	cluster TEXT NOT NULL, 
	project TEXT NOT NULL, 
	tier TEXT NOT NULL, 
	cpu BIGINT NOT NULL, 
	memory BIGINT NOT NULL, 
	gpus BIGINT NOT NULL, 
	pods BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	PRIMARY KEY (cluster, project, tier)
);
INSERT INTO "sums" VALUES('main','ads','on-demand',0,0,0,9,0);
CREATE INDEX submissions_of ON submissions (project, name);
CREATE INDEX revisions_of ON revisions (cluster, project, kind, name);
CREATE INDEX outbox_open ON outbox (cluster, number) WHERE done_at IS NULL;
CREATE TRIGGER audit_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit is only ever added to'); END;
CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit is only ever added to'); END;
CREATE INDEX outbox_pending ON outbox (cluster, project, name) WHERE done_at IS NULL;
CREATE TRIGGER sums_insert AFTER INSERT ON ledger BEGIN INSERT INTO sums VALUES (NEW.cluster, NEW.project, NEW.tier, NEW.cpu, NEW.memory, NEW.gpus, NEW.pods, NEW.bytes) ON CONFLICT (cluster, project, tier) DO UPDATE SET cpu = sums.cpu + excluded.cpu, memory = sums.memory + excluded.memory, gpus = sums.gpus + excluded.gpus, pods = sums.pods + excluded.pods, bytes = sums.bytes + excluded.bytes; END;
CREATE TRIGGER sums_delete AFTER DELETE ON ledger BEGIN UPDATE sums SET cpu = cpu - OLD.cpu, memory = memory - OLD.memory, gpus = gpus - OLD.gpus, pods = pods - OLD.pods, bytes = bytes - OLD.bytes WHERE cluster = OLD.cluster AND project = OLD.project AND tier = OLD.tier; END;
CREATE INDEX ledger_unsettled ON ledger (cluster, project, kind, name) WHERE written IS NOT NULL;
COMMIT;
