package compile

// Confine is confine, for a probe process.
var Confine = confine
