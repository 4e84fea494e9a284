package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// batches are the JSON-RPC batches of a client whose protocol version has them. The
// SDK sees their messages one by one (a batch of notifications, and one whose ids it
// has seen, would end its session); a batch's answers are kept until all are there.
type batches struct {
	version string // that was negotiated
	waiting map[jsonrpc.ID]*batch
}

type batch struct {
	answers [][]byte
	want    int
}

// lastWithBatches is the last protocol version that has batches.
const lastWithBatches = "2025-03-26"

// begin takes a batch's requests in, or says why it can't be.
func (l *lines) begin(requests []jsonrpc.ID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.version == "":
		return errors.New("a batch can't come before the answer to initialize: send one message on each line")
	case l.version > lastWithBatches:
		return fmt.Errorf("the protocol version %s has no batches: send one message on each line", l.version)
	}
	seen := map[jsonrpc.ID]bool{}
	for _, id := range requests {
		if seen[id] || l.waiting[id] != nil {
			return fmt.Errorf("two requests of batches have the id %v", id.Raw())
		}
		seen[id] = true
	}
	if l.waiting == nil {
		l.waiting = map[jsonrpc.ID]*batch{}
	}
	b := &batch{want: len(requests)}
	for id := range seen {
		l.waiting[id] = b
	}
	return nil
}

// answer gives what is written for an answer, and how many there are in it: itself,
// or, of a batch, all when it is the last, and before nothing. The caller holds mu.
func (l *lines) answer(p []byte) (whole []byte, answers int64) {
	if l.version == "" && bytes.Contains(p, []byte(`"protocolVersion":`)) {
		var initialized struct {
			Result struct {
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"result"`
		}
		if json.Unmarshal(p, &initialized) == nil {
			l.version = initialized.Result.ProtocolVersion
		}
	}
	if len(l.waiting) == 0 {
		return p, 1
	}
	message, err := jsonrpc.DecodeMessage(bytes.TrimSpace(p))
	if err != nil {
		return p, 1
	}
	response, ok := message.(*jsonrpc.Response)
	if !ok || l.waiting[response.ID] == nil {
		return p, 1
	}
	b := l.waiting[response.ID]
	delete(l.waiting, response.ID)
	b.answers = append(b.answers, bytes.Clone(bytes.TrimSpace(p)))
	if len(b.answers) < b.want {
		return nil, 0
	}
	return append(append([]byte("["), bytes.Join(b.answers, []byte(","))...), "]\n"...), int64(b.want)
}
