//go:build !linux && !darwin

package reach

const keptVerb = "__kept"

func keptMain([]string) int { return 1 }
