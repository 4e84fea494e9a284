package launcher

import "errors"

// NewCgroup fails: there are no cgroups here.
func NewCgroup(string, int64, int64) (*Cgroup, error) {
	return nil, errors.New("there are no cgroups on this system")
}

// OfferedCgroup says that there are none.
func OfferedCgroup() CgroupSupport {
	return CgroupSupport{Detail: "there are no cgroups on this system; each child's memory is watched, not that of processes it starts"}
}

// RemoveEmptyCgroups does nothing.
func RemoveEmptyCgroups(func(name string) bool) (none bool) { return true }

// ReportRefused is of a system with filters: here no call is refused by one.
func ReportRefused(func(call string)) {}
