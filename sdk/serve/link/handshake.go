package link

import "github.com/hashicorp/go-plugin"

// Cookie is the environment variable by which a plugin knows that a host
// started it, and its value. It protects against nothing.
const (
	CookieName  = "DATALINK_PLUGIN"
	CookieValue = "datalink.v1"
)

// HelloEnv is set to HelloLine when the first line of the plugin's standard input
// is a Hello. The input stays open for as long as the host lives.
const (
	HelloEnv  = "DATALINK_HELLO"
	HelloLine = "stdin"
)

// Name is the one entry of the plugin set.
const Name = "connector"

// Handshake returns the configuration of go-plugin's handshake.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: CookieName, MagicCookieValue: CookieValue}
}
