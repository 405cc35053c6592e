package sandbox

// soon is what a goroutine of its own finds out.
type soon[T any] struct {
	done  chan struct{} // closed when it is there
	value T
	err   error
	panic any
}

// meanwhile begins f.
func meanwhile[T any](f func() (T, error)) *soon[T] {
	l := &soon[T]{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer func() { l.panic = recover() }()
		l.value, l.err = f()
	}()
	return l
}

// wait gives what f gave. A panic of f goes on in who waits, where it is known
// what to do about it; where nobody does, it ends with f.
func (l *soon[T]) wait() (T, error) {
	<-l.done
	if l.panic != nil {
		panic(l.panic)
	}
	return l.value, l.err
}
