package outline

import (
	"bytes"
	"fmt"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

func (l *linker) functions() error {
	next := l.core.Count(wasmbin.FunctionSection) // it imports none
	var b []byte
	for t, err := range l.side.Functions() {
		if err != nil {
			return err
		}
		l.funcs = append(l.funcs, next)
		next++
		b = wasmbin.AppendUint(b, t+l.types)
	}
	l.append(wasmbin.FunctionSection, l.side.Count(wasmbin.FunctionSection), b)
	return nil
}

func (l *linker) code() error {
	var b bytes.Buffer
	for body, err := range l.side.Bodies() {
		if err != nil {
			return err
		}
		if body.Code, err = l.body(body); err != nil {
			return err
		}
		b.Write(body.Append(nil))
	}
	l.append(wasmbin.CodeSection, l.side.Count(wasmbin.CodeSection), b.Bytes())
	return nil
}

// body renumbers what a function's instructions refer to.
func (l *linker) body(body wasmbin.Body) ([]byte, error) {
	s := body.Scan()
	out := make([]byte, 0, len(body.Code)+len(body.Code)/8)
	for s.Next() {
		switch in := s.In; in.Op {
		case wasmbin.OpCall, wasmbin.OpRefFunc:
			out = wasmbin.AppendOp(out, in.Op, l.funcs[in.X])
		case wasmbin.OpCallIndirect:
			out = wasmbin.AppendOp(out, in.Op, in.X+l.types, in.Y)
		case wasmbin.OpGlobalGet, wasmbin.OpGlobalSet:
			out = wasmbin.AppendOp(out, in.Op, l.globs[in.X])
		case wasmbin.OpMemoryInit:
			out = append(wasmbin.AppendOp(out, in.Op, in.X+l.data), 0)
		case wasmbin.OpDataDrop:
			out = wasmbin.AppendOp(out, in.Op, in.X+l.data)
		case wasmbin.OpTableInit:
			out = wasmbin.AppendOp(out, in.Op, in.X+l.elements, in.Y)
		case wasmbin.OpElemDrop:
			out = wasmbin.AppendOp(out, in.Op, in.X+l.elements)
		case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
			if in.Typed {
				out = wasmbin.AppendInt(append(out, byte(in.Op)), int64(in.X+l.types))
				continue
			}
			fallthrough
		default:
			out = append(out, body.Code[in.Start:in.End]...)
		}
	}
	return out, s.Err()
}

func (l *linker) table() error {
	var b []byte
	for t, err := range l.core.Tables() {
		if err != nil {
			return err
		}
		t.Min = l.slots + l.room + uint32(len(l.want))
		t.HasMax, t.Max = true, t.Min
		b = t.Append(b)
	}
	l.out.Set(wasmbin.TableSection, 1, b)
	return nil
}

func (l *linker) segments() error {
	var b []byte
	n := l.side.Count(wasmbin.ElementSection)
	for e, err := range l.side.Elements() {
		if err != nil {
			return err
		}
		if e.Active() {
			if e.Offset, err = l.constant(e.Offset); err != nil {
				return err
			}
		}
		b = e.Append(b, l.function)
	}
	for i, name := range l.want {
		f, ok := l.exported(name)
		if !ok {
			return fmt.Errorf("%w: it asks for the address of %q, which it has not", errPack, name)
		}
		b = append(b, 0)
		b = append(b, i32(l.slots+l.room+uint32(i))...)
		b = wasmbin.AppendUint(wasmbin.AppendUint(b, 1), f)
		n++
	}
	l.append(wasmbin.ElementSection, n, b)
	b = nil
	for d, err := range l.side.DataSegments() {
		if err != nil {
			return err
		}
		if !d.Passive {
			if d.Offset, err = l.constant(d.Offset); err != nil {
				return err
			}
		}
		b = d.Append(b)
	}
	n = l.side.Count(wasmbin.DataSection)
	l.append(wasmbin.DataSection, n, b)
	if l.core.Has(wasmbin.DataCountSection) || l.side.Has(wasmbin.DataCountSection) {
		l.out.Set(wasmbin.DataCountSection, l.data+n)
	}
	return nil
}
