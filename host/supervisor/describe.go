package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/datalink-go/datalink/sdk/manifest"
)

// Errors of a plugin that is not what it should be. None of them is worth a retry.
var (
	ErrProtocol = errors.New("protocol version does not fit")
	ErrManifest = errors.New("manifest does not hold")
	ErrLevel    = errors.New("level is not implemented")
)

// batchFormat is the version of the block layout that the host reads.
const batchFormat = 1

// checkManifest reads what the program says of itself and compares it with what
// its package claims. Claims the code does not bear out are refused; abilities
// that are not claimed are no fault.
func checkManifest(data []byte, claim *manifest.Manifest, role manifest.Role, version uint32) (*manifest.Manifest, error) {
	m := new(manifest.Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%w: answer to Describe: %w", ErrManifest, err)
	}
	switch {
	case version < m.ProtocolMin || version > m.ProtocolMax:
		return nil, fmt.Errorf("%w: plugin %s %s says %d to %d, the handshake chose %d", ErrProtocol, m.Name, m.Version, m.ProtocolMin, m.ProtocolMax, version)
	case m.BatchFormat != batchFormat:
		return nil, fmt.Errorf("%w: plugin %s %s writes block format %d, expected %d: install a version built for this host", ErrProtocol, m.Name, m.Version, m.BatchFormat, batchFormat)
	}
	is, ok := m.Roles[role]
	if !ok {
		return nil, fmt.Errorf("%w: plugin %s %s is no %s", ErrManifest, m.Name, m.Version, role)
	}
	if claim == nil {
		return m, nil
	}
	if claim.Name != m.Name || claim.Version != m.Version {
		return nil, fmt.Errorf("%w: the package is %s %s, the program says %s %s", ErrManifest, claim.Name, claim.Version, m.Name, m.Version)
	}
	claimed := claim.Roles[role]
	if claimed.Level != is.Level {
		return nil, fmt.Errorf("%w: the manifest of %s %s claims %q for its %s, its code is %q", ErrLevel, m.Name, m.Version, claimed.Level, role, is.Level)
	}
	for _, c := range claimed.Capabilities {
		if !slices.Contains(is.Capabilities, c) {
			return nil, fmt.Errorf("%w: the manifest of %s %s claims the ability %q for its %s, its code has %q", ErrManifest, m.Name, m.Version, c, role, is.Capabilities)
		}
	}
	return m, nil
}
