// Two clients, made with the official Go SDK and with mark3labs/mcp-go: goclients sdk|mcp-go URL KEY, or sdk|mcp-go COMMAND ARGS…, lists the tools
// and reads note.txt. They stand in a module of their own, so that tai itself requires neither.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	markclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mark "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listed is what a client prints.
type listed struct {
	Revision string   `json:"revision"`
	Tools    []string `json:"tools"`
	Result   any      `json:"result"`
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: goclients sdk|mcp-go URL KEY, or sdk|mcp-go COMMAND ARGS…"))
	}
	use := map[string]func(context.Context, []string) (listed, error){"sdk": official, "mcp-go": markClient}[os.Args[1]]
	if use == nil {
		fail(fmt.Errorf("no client %q", os.Args[1]))
	}
	got, err := use(ctx, os.Args[2:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(got)
	}
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// overHTTP tells URL and KEY from a command.
func overHTTP(target []string) (url, key string, ok bool) {
	if !strings.HasPrefix(target[0], "http://") {
		return "", "", false
	}
	if len(target) > 1 {
		key = target[1]
	}
	return target[0], key, true
}

// keyed adds the key to each request; "" adds none.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(k))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func official(ctx context.Context, target []string) (got listed, err error) {
	var way mcp.Transport = &mcp.CommandTransport{Command: exec.CommandContext(ctx, target[0], target[1:]...)}
	if url, key, ok := overHTTP(target); ok {
		way = &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: keyed(key)}}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "peer", Version: "1"}, nil).Connect(ctx, way, nil)
	if err != nil {
		return got, fmt.Errorf("connect: %w", err)
	}
	got.Revision = session.InitializeResult().ProtocolVersion
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return got, fmt.Errorf("list: %w", err)
		}
		got.Tools = append(got.Tools, tool.Name)
	}
	if got.Result, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "file_read", Arguments: map[string]any{"path": "note.txt"}}); err != nil {
		return got, fmt.Errorf("call: %w", err)
	}
	if err := session.Close(); err != nil {
		return got, fmt.Errorf("close: %w", err)
	}
	return got, nil
}

func markClient(ctx context.Context, target []string) (got listed, err error) {
	var c *markclient.Client
	if url, key, ok := overHTTP(target); ok {
		c, err = markclient.NewStreamableHttpClient(url, transport.WithHTTPBasicClient(&http.Client{Transport: keyed(key)}))
	} else {
		c, err = markclient.NewStdioMCPClient(target[0], os.Environ(), target[1:]...)
	}
	if err != nil {
		return got, fmt.Errorf("client: %w", err)
	}
	if err := c.Start(ctx); err != nil {
		return got, fmt.Errorf("start: %w", err)
	}
	opening := mark.InitializeRequest{}
	opening.Params.ProtocolVersion, opening.Params.ClientInfo = mark.LATEST_PROTOCOL_VERSION, mark.Implementation{Name: "peer", Version: "1"}
	opened, err := c.Initialize(ctx, opening)
	if err != nil {
		return got, fmt.Errorf("initialize: %w", err)
	}
	got.Revision = opened.ProtocolVersion
	list, err := c.ListTools(ctx, mark.ListToolsRequest{})
	if err != nil {
		return got, fmt.Errorf("list: %w", err)
	}
	for _, tool := range list.Tools {
		got.Tools = append(got.Tools, tool.Name)
	}
	call := mark.CallToolRequest{}
	call.Params.Name, call.Params.Arguments = "file_read", map[string]any{"path": "note.txt"}
	if got.Result, err = c.CallTool(ctx, call); err != nil {
		return got, fmt.Errorf("call: %w", err)
	}
	if err := c.Close(); err != nil {
		return got, fmt.Errorf("close: %w", err)
	}
	return got, nil
}
