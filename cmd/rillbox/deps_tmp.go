package main
import (
 _ "github.com/modelcontextprotocol/go-sdk/mcp"
 _ "github.com/hashicorp/go-getter/v2"
 _ "github.com/rs/zerolog"
 _ "github.com/landlock-lsm/go-landlock/landlock"
 _ "github.com/evanw/esbuild/pkg/api"
 _ "github.com/spf13/cobra"
 _ "github.com/pelletier/go-toml/v2"
 _ "github.com/gofrs/flock"
 _ "github.com/schollz/progressbar/v3"
 _ "golang.org/x/sync/singleflight"
 _ "golang.org/x/sys/unix"
 _ "golang.org/x/term"
 _ "github.com/mattn/go-shellwords"
 _ "github.com/google/jsonschema-go/jsonschema"
)
func main(){}
