package pdk

// Describe is for the tests of this folder.
var Describe = describe
