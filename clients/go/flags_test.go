package flags

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

type vector struct {
	Flag, Key string
	Value     any
	Default   bool
	Bucket    int
	On        bool
}

func TestAgreesWithTheSharedVectors(t *testing.T) {
	text, err := os.ReadFile("../vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, each := range vectors {
		if bucket := BucketOf(each.Flag, each.Key); bucket != each.Bucket {
			t.Errorf("%+v: bucket %d", each, bucket)
		}
		if on := IsOn(each.Value, each.Flag, each.Key, each.Default); on != each.On {
			t.Errorf("%+v: on %v", each, on)
		}
	}
}

func TestKeepsTheLastGoodValues(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("LIVE_CONFIG_FOLDER", folder)
	file := filepath.Join(folder, "flags", "flags.json")
	flags := New("flags", "flags.json")
	if flags.IsOn("a", "k", false) || !flags.IsOn("a", "k", true) {
		t.Error("without a file, the default must hold")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, each := range []struct {
		text string
		on   bool
	}{{`{"a": 100}`, true}, {`{"a": `, true}, {`{"a": 0}`, false}, {`[]`, false}} {
		fresh := file + ".new"
		if err := os.WriteFile(fresh, []byte(each.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, file); err != nil {
			t.Fatal(err)
		}
		flags.modified = flags.modified.Add(-1) // As if the clock of the file system was coarse.
		if on := flags.IsOn("a", "k", false); on != each.on {
			t.Errorf("%s: %v", each.text, on)
		}
	}
}
