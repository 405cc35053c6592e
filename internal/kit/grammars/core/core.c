// The parser's core for grammar packs: tree-sitter's own C library, and two
// functions over it. A pack is linked to it as if it were part of it. The core
// needs nothing from outside: no WASI, no clock, no files.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HAVE_ENDIAN_H // wasi-libc has it

// Debugging output has nowhere to go.
#define fprintf(...) ((void)0)
#define fputs(...) ((void)0)
#define fputc(...) ((void)0)
#define fclose(...) ((void)0)
#define fdopen(...) NULL
#define dup(...) (-1)
#define snprintf(...) 0
#define vsnprintf(...) 0
#define clock_gettime(...) 0

#include "alloc.c"
#include "get_changed_ranges.c"
#include "language.c"
#include "lexer.c"
#include "node.c"
#include "parser.c"
#include "stack.c"
#include "subtree.c"
#include "tree_cursor.c"
#include "tree.c"
#include "wasm_store.c"

#define EXPORT(name) __attribute__((export_name(name)))

// Scanners of some packs check their own state.
EXPORT("__assert_fail")
void core_assert_fail(const char *what, const char *file, int line, const char *function) { abort(); }

// record is one node; the host reads it as little-endian numbers.
typedef struct {
  uint32_t start, end, row, end_row;
  uint16_t kind, field, depth, flags;
} record;

enum { NAMED = 1, BAD = 2 };          // flags of a record
enum { OPEN = 1, BODY = 2, HOLDER = 4 }; // what the host says about a kind

static struct {
  uint32_t count;
  uint32_t bad;     // the tree has an error somewhere
  uint32_t bad_row; // line of the first one
  record *records;
} result;

static uint32_t row_of_first_error(TSNode node) {
  for (;;) {
    uint32_t row = ts_node_start_point(node).row;
    if (ts_node_is_error(node) || ts_node_is_missing(node)) return row;
    uint32_t n = ts_node_child_count(node), i = 0;
    for (; i < n; i++) {
      TSNode child = ts_node_child(node, i);
      if (ts_node_has_error(child) || ts_node_is_missing(child)) {
        node = child;
        break;
      }
    }
    if (i == n) return row;
  }
}

// outline_parse gives a tree, or null where the language does not fit the core.
EXPORT("outline_parse")
TSTree *outline_parse(const TSLanguage *language, const char *text, uint32_t length) {
  TSParser *parser = ts_parser_new();
  if (!ts_parser_set_language(parser, language)) return NULL;
  return ts_parser_parse_string(parser, NULL, text, length);
}

// outline_walk copies the open part of a tree, in pre-order. walk holds a byte
// for each of kinds.
EXPORT("outline_walk")
void *outline_walk(const TSTree *tree, const uint8_t *walk, uint32_t kinds, uint32_t max_nodes, uint32_t max_depth) {
  TSNode root = ts_tree_root_node(tree);
  result.bad = ts_node_has_error(root);
  if (result.bad) result.bad_row = row_of_first_error(root);
  uint32_t room = 0, depth = 0;
  uint16_t path[256];
  if (max_depth > 255) max_depth = 255;
  TSTreeCursor cursor = ts_tree_cursor_new(root);
  while (result.count < max_nodes) {
    if (result.count == room) {
      room = room ? room * 2 : 1024;
      result.records = ts_realloc(result.records, room * sizeof(record));
    }
    TSNode node = ts_tree_cursor_current_node(&cursor);
    record *r = &result.records[result.count++];
    r->kind = ts_node_symbol(node);
    r->field = ts_tree_cursor_current_field_id(&cursor);
    r->depth = depth;
    r->flags = (ts_node_is_named(node) ? NAMED : 0) | (ts_node_is_error(node) || ts_node_is_missing(node) ? BAD : 0);
    r->start = ts_node_start_byte(node);
    r->end = ts_node_end_byte(node);
    r->row = ts_node_start_point(node).row;
    r->end_row = ts_node_end_point(node).row;
    uint32_t kind = r->kind, parent = depth ? path[depth - 1] : kind;
    uint8_t w = kind < kinds ? walk[kind] : OPEN; // an error's number is beyond the last
    bool open = w & OPEN || (w & BODY && parent < kinds && walk[parent] & HOLDER);
    if (open && depth < max_depth && ts_tree_cursor_goto_first_child(&cursor)) {
      path[depth++] = kind;
      continue;
    }
    while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
      if (depth == 0 || !ts_tree_cursor_goto_parent(&cursor)) return &result;
      depth--;
    }
  }
  return &result;
}
