package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// messagesOf are all messages of a connection's input. Nobody answers them.
func messagesOf(c *conn) (all []jsonrpc.Message) {
	go func() {
		c.readLines()
		c.Close()
	}()
	for {
		message, err := c.Read(context.Background())
		if err != nil {
			return all
		}
		c.update(func() { c.unanswered, c.held = 0, false })
		all = append(all, message)
	}
}

func TestRefusedLinesKeepTheirID(t *testing.T) {
	long := strings.Repeat("a", 5000)
	for _, row := range []struct{ line, id string }{
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"` + long + `"}}`, `7`},
		{`{"method":"tools/call","params":{"id":1,"x":"` + long + `"},"jsonrpc":"2.0","id":"seven"}`, `"seven"`},
		{`{"id":-8,"params":{"x":"` + long + `"}}`, `-8`},
		{`{"params":{"x":"` + long + `","id":9}}`, `null`},
		{`{"params":{"id":9,"x":"` + long + `"}}`, `null`},
		{`{"params":"` + long + `\",\"id\":9}"}`, `null`},
		{long, `null`},
		{`{"jsonrpc":"2.0","id":10,"method":}`, `10`},
		{`{"jsonrpc":"1.0","id":11,"method":"ping"}`, `11`},
		{`{"jsonrpc":"2.0","id":12,"method":"ping","params":` + strings.Repeat("[", 1200) + strings.Repeat("]", 1200) + `}`, `12`},
		{`{"jsonrpc":"2.0","id":13,"method":"ping"} {"jsonrpc":"2.0","id":14,"method":"ping"}`, `13`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `1.5`},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `9007199254740993`},
		{`{"jsonrpc":"2.0","method":"ping","id":-9223372036854775808}`, `-9223372036854775808`},
		{`{"jsonrpc":"2.0","id":1e30,"method":"ping"}`, `1e30`},
		{`[]`, `null`},
	} {
		var out bytes.Buffer
		c := newConn(strings.NewReader(row.line+"\n"), &out, 4000, slog.New(slog.DiscardHandler))
		if passed := messagesOf(c); len(passed) > 0 || c.inputErr != io.EOF {
			t.Errorf("%.60s reached the SDK: %v %v", row.line, passed, c.inputErr)
		}
		var answer struct {
			ID    json.RawMessage
			Error struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
			t.Fatalf("%.60s: answered %q", row.line, out.String())
		}
		if string(answer.ID) != row.id || answer.Error.Code == 0 || answer.Error.Message == "" {
			t.Errorf("%.60s: answered %s, want the id %s", row.line, out.String(), row.id)
		}
	}
}

// FuzzLines feeds any bytes: what reaches the SDK can be decoded, what does not
// is answered, and the good line after it all still arrives.
func FuzzLines(f *testing.F) {
	f.Add([]byte(initialize))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1}` + "\n\r\n\n[[[{"))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"a"}]` + "\n[{}]\n  \n"))
	f.Add([]byte("\xff\xfe\x00\n" + strings.Repeat("[", 3000)))
	const good = `{"jsonrpc":"2.0","id":"the good one","method":"ping"}`
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out bytes.Buffer
		c := newConn(bytes.NewReader(append(append(raw, '\n'), good...)), &out, 2000, slog.New(slog.DiscardHandler))
		c.version = lastWithBatches
		var last []byte
		for _, message := range messagesOf(c) {
			var err error
			if last, err = jsonrpc.EncodeMessage(message); err != nil {
				t.Errorf("%v reached the SDK: %v", message, err)
			}
		}
		if string(last) != good {
			t.Errorf("after %q the good line did not arrive", raw)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("answered %q", line)
			}
		}
	})
}
