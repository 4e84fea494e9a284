package job

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// TestAProgramAndItsResultTravel: what is written as JSON is what is read back.
func TestAProgramAndItsResultTravel(t *testing.T) {
	programs := []Program{
		{},
		{
			ID: "a", Language: Python, Name: "main.py", Code: "1", Args: []string{"x"}, Packages: []string{"p"}, Permissions: []string{},
			Files: map[string][]byte{"x.py": []byte("\xff")}, Folder: "src", Path: "src/main.py", Command: "c", URL: "https://example.com/main.py",
			Check: true, FetchOnly: true, Manifest: Manifest{Frozen: true},
			Workspace: "/w", ReadOnly: true, Echo: true, Combined: true, Timeout: time.Second,
		},
	}
	for _, p := range programs {
		var got Program
		travel(t, p, &got)
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%+v came back as %+v", p, got)
		}
	}
	r := Result{
		ExecutionID: "a", Language: Python, Status: Failed, ExitCode: 1,
		Stdout:   Captured{Head: []byte("\xffout"), Tail: []byte("end"), Omitted: 7},
		Stderr:   Captured{Head: []byte("err")},
		Combined: true,
		Value:    json.RawMessage(`{"a":[1,null]}`), Displays: []Display{{"text/plain": "x"}}, State: StateKept,
		Error:    &GuestError{Name: "E", Message: "m", Traceback: "t"},
		Duration: 1, Waited: 2, Installing: 3, Fetching: 2, CPU: 4, PeakMemory: 5,
		Packages: []Package{{Name: "p", Version: "1", Source: "npm", Cached: true}}, Notes: []string{"n"},
		Lock: []byte("{}"),
	}
	for i := range reflect.TypeFor[Result]().NumField() {
		if reflect.ValueOf(r).Field(i).IsZero() {
			t.Errorf("the test has nothing in %s", reflect.TypeFor[Result]().Field(i).Name)
		}
	}
	var got Result
	travel(t, r, &got)
	if !reflect.DeepEqual(got, r) {
		t.Errorf("%+v came back as %+v", r, got)
	}
}

func travel(t *testing.T, from, to any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}
