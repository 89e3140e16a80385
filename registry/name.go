package registry

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

var (
	nameForm    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	versionForm = regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$`)
	digestForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func validName(s string) bool    { return nameForm.MatchString(s) }
func validVersion(s string) bool { return len(s) <= 64 && versionForm.MatchString(s) }
func validDigest(s string) bool  { return digestForm.MatchString(s) }

// CompareVersions orders versions as semver.org 2.0.0, section 11, says; build
// metadata is not used here.
func CompareVersions(a, b string) int {
	an, ap, _ := strings.Cut(a, "-")
	bn, bp, _ := strings.Cut(b, "-")
	as, bs := strings.Split(an, "."), strings.Split(bn, ".")
	for i := range min(len(as), len(bs)) {
		if c := compareNumbers(as[i], bs[i]); c != 0 {
			return c
		}
	}
	switch {
	case ap == bp:
		return cmp.Compare(len(as), len(bs))
	case ap == "":
		return 1
	case bp == "":
		return -1
	}
	as, bs = strings.Split(ap, "."), strings.Split(bp, ".")
	for i := range min(len(as), len(bs)) {
		if c := comparePre(as[i], bs[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

func comparePre(a, b string) int {
	_, aerr := strconv.ParseUint(a, 10, 64)
	_, berr := strconv.ParseUint(b, 10, 64)
	switch {
	case aerr == nil && berr == nil:
		return compareNumbers(a, b)
	case aerr == nil:
		return -1
	case berr == nil:
		return 1
	}
	return strings.Compare(a, b)
}

func compareNumbers(a, b string) int {
	x, _ := strconv.ParseUint(a, 10, 64)
	y, _ := strconv.ParseUint(b, 10, 64)
	return cmp.Compare(x, y)
}

// Newest returns the highest version that is no pre-release, "" when there is none.
func Newest(versions []string) string {
	best := ""
	for _, v := range versions {
		if !strings.Contains(v, "-") && (best == "" || CompareVersions(v, best) > 0) {
			best = v
		}
	}
	return best
}
