//go:build !unix

package compile

// Private refuses nothing: on Windows the folders of a user's profile are the
// user's own by what they inherit.
func Private(string) error { return nil }
