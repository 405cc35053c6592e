;; SIMD, bulk memory, sign extension and multi-value are part of elf/1.
(module
  (memory (export "memory") 1)
  (func (export "elf_alloc") (param i32) (result i32) (i32.const 1024))
  (func $two (result i32 i32) (i32.const 0x0078) (i32.const 16))
  (func (export "elf_call") (param i32 i32 i32 i32) (result i64)
    (local $v i32) (local $at i32)
    (call $two) (local.set $at) (local.set $v)
    (memory.fill (i32.const 16) (i32.const 0) (i32.const 16))
    (v128.store (i32.const 64) (i32x4.splat (i32.shl (local.get $v) (i32.const 8))))
    (memory.copy (local.get $at) (i32.const 64) (i32.const 4))
    (i64.extend32_s (i64.const 0x1000000002)) (drop)
    (i64.const 0x1000000002)))
