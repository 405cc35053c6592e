package meter

// Thread is for tests that compare with a module that was only threaded.
var Thread = thread
