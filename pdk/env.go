package pdk

import "context"

// Env returns a setting of the host, for which the plugin needs the capability
// env with that name. It is abi.ErrNotFound where the setting is granted but not
// set. (os.Getenv sees nothing: a guest starts before anybody's grants exist.)
func Env(ctx context.Context, name string) (string, error) {
	header := struct {
		Name string `json:"name"`
	}{name}
	value, err := opEnvGet.do(ctx, header, nil, nil)
	return string(value), err
}

// Secret returns a placeholder for a secret, for which the plugin needs the
// capability secret ("name@host"). Put it into a header, the query or the path
// of a [Request]: the host replaces it on the way out, for the granted hosts
// only. The value itself never enters the guest. It is abi.ErrNotFound where the
// person has set none.
func Secret(ctx context.Context, name string) (string, error) {
	header := struct {
		Name string `json:"name"`
	}{name}
	value, err := opSecret.do(ctx, header, nil, nil)
	return string(value), err
}
