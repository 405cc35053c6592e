// Sqlite-query answers questions to a SQLite database. The engine runs inside
// the plugin: the file is opened read-only, and an authorizer refuses every
// statement that would write, attach or configure. fetch.sh brings SQLite here.
#define SQLITE_OS_OTHER 1
#define SQLITE_THREADSAFE 0
#define SQLITE_TEMP_STORE 3
#define SQLITE_USE_URI 1
#define SQLITE_DQS 0
#define SQLITE_MAX_ATTACHED 0
#define SQLITE_MAX_MMAP_SIZE 0
#define SQLITE_DEFAULT_MEMSTATUS 0
#define SQLITE_OMIT_LOAD_EXTENSION 1
#define SQLITE_OMIT_LOCALTIME 1
#define SQLITE_OMIT_SHARED_CACHE 1
#define SQLITE_OMIT_DEPRECATED 1
#define SQLITE_ENABLE_FTS5 1
#define SQLITE_ENABLE_RTREE 1
#define SQLITE_ENABLE_MATH_FUNCTIONS 1
#define SQLITE_API static
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wall"
#include "sqlite/sqlite3.c"
#pragma clang diagnostic pop

#include "elf.h"
#include "vfs.h"

#include <errno.h>

enum { DEFAULT_ROWS = 100, MAX_ROWS = 10000, MAX_CELL = 2000, MAX_SCHEMA = 64 << 10, MAX_ANSWER = 512 << 10 };

static int allowed_pragma(const char *name) {
  static const char *const names[] = {
      "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
      "page_count", "page_size", "user_version", "schema_version", "encoding", "integrity_check", "quick_check",
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!sqlite3_stricmp(name, names[i])) return 1;
  return 0;
}

static int authorize(void *u, int action, const char *a, const char *b, const char *schema, const char *inner) {
  switch (action) {
  case SQLITE_SELECT:
  case SQLITE_READ:
  case SQLITE_FUNCTION:
  case SQLITE_RECURSIVE: return SQLITE_OK;
  case SQLITE_PRAGMA: return allowed_pragma(a) ? SQLITE_OK : SQLITE_DENY;
  }
  return SQLITE_DENY;
}

// explain puts what SQLite says into a sentence for the model.
static void explain(sqlite3 *db, int rc) {
  switch (rc & 0xff) {
  case SQLITE_AUTH:
  case SQLITE_READONLY:
    elf_error("That is not allowed here: this tool only reads. Use SELECT, or one of the PRAGMAs table_info, table_list, index_list, foreign_key_list.");
    return;
  case SQLITE_NOTADB:
  case SQLITE_CORRUPT: elf_error("The file is not a SQLite database, or it is damaged."); return;
  case SQLITE_NOMEM:
  case SQLITE_FULL: elf_error("The query needs more memory than this tool has. Ask for less."); return;
  }
  elf_error("SQLite says: %s. Call sqlite_schema to see the tables and columns.", db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

// encoded writes a path as part of a URI.
static char *encoded(const char *path) {
  char *uri = elf_format("file:%*s", (int)(strlen(path) * 3), ""), *out = uri + 5;
  for (; *path; path++) {
    unsigned char c = (unsigned char)*path;
    int plain = ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c >= 0x80 || strchr("/._-", c);
    if (plain) *out++ = (char)c;
    else out += sprintf(out, "%%%02X", c);
  }
  *out = 0;
  return elf_format("%s?mode=ro&immutable=1", uri);
}

// open_database opens a file of the workspace, and says what a reader of its
// rows must know. NULL: an answer was given.
static sqlite3 *open_database(const char *args, const char **note) {
  const char *name = elf_string(args, "path", "");
  char *path = !strncmp(name, "/ws/", 4) ? elf_format("%s", name) : elf_format("/ws/%s", name);
  struct stat st;
  if (stat(path, &st)) {
    if (errno == ENOENT) elf_error("There is no file \"%s\" in the workspace.", name);
    else elf_error("The file \"%s\" may not be read.", name);
    return NULL;
  }
  if (!S_ISREG(st.st_mode)) {
    elf_error("\"%s\" is not a file.", name);
    return NULL;
  }
  *note = "";
  char *wal = elf_format("%s-wal", path);
  if (!stat(wal, &st) && st.st_size > 0)
    *note = elf_format("\nNote: another program has changes in %s-wal that are not in the file yet; they are not part of this answer.\n", name);
  sqlite3 *db = NULL;
  int rc = sqlite3_open_v2(encoded(path), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
  if (rc != SQLITE_OK) {
    if ((rc & 0xff) == SQLITE_CANTOPEN) elf_error("The file \"%s\" may not be read.", name);
    else explain(db, rc);
    sqlite3_close(db);
    return NULL;
  }
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 32 << 20);
  sqlite3_set_authorizer(db, authorize, NULL);
  return db;
}

// bind_params binds a JSON array of plain values. It is false when it answered.
static int bind_params(sqlite3_stmt *s, const char *list) {
  int n = 0, want = sqlite3_bind_parameter_count(s);
  const char *p = list && *list == '[' ? elf_space_(list + 1) : "";
  while (*p && *p != ']') {
    if (++n <= want) {
      if (*p == '"') sqlite3_bind_text(s, n, elf_unquote(p), -1, SQLITE_TRANSIENT);
      else if (*p == 't' || *p == 'f') sqlite3_bind_int(s, n, *p == 't');
      else if (*p != 'n') {
        size_t len = strcspn(p, ",] \n\t\r");
        if (memchr(p, '.', len) || memchr(p, 'e', len) || memchr(p, 'E', len) || len > 19) sqlite3_bind_double(s, n, strtod(p, NULL));
        else sqlite3_bind_int64(s, n, strtoll(p, NULL, 10));
      }
    }
    p = elf_space_(elf_skip_(p));
    if (*p == ',') p = elf_space_(p + 1);
  }
  if (n == want) return 1;
  elf_error("The statement has %d parameters, and params has %d.", want, n);
  return 0;
}

// put_text writes a cell so that it stays in its place of the table.
static void put_text(sqlite3_str *out, const char *text, int n) {
  int shown = n;
  if (n > MAX_CELL)
    for (shown = MAX_CELL; shown > 0 && (text[shown] & 0xC0) == 0x80;) shown--;
  for (int i = 0; i < shown; i++) {
    if (text[i] == '|') sqlite3_str_appendall(out, "\\|");
    else if (text[i] == '\r' && i + 1 < shown && text[i + 1] == '\n') continue;
    else if (text[i] == '\n' || text[i] == '\r') sqlite3_str_appendall(out, " \xE2\x8F\x8E ");
    else sqlite3_str_appendchar(out, 1, text[i] ? text[i] : ' ');
  }
  if (shown < n) sqlite3_str_appendf(out, "\xE2\x80\xA6 (%d bytes)", n);
}

// put_cell shows NULL and bytes so that they cannot be mistaken for text.
static void put_cell(sqlite3_str *out, sqlite3_stmt *s, int i) {
  switch (sqlite3_column_type(s, i)) {
  case SQLITE_NULL: sqlite3_str_appendall(out, "NULL"); return;
  case SQLITE_BLOB: {
    const unsigned char *b = sqlite3_column_blob(s, i);
    int n = sqlite3_column_bytes(s, i);
    sqlite3_str_appendall(out, "x'");
    for (int k = 0; k < n && k < 32; k++) sqlite3_str_appendf(out, "%02x", b[k]);
    sqlite3_str_appendall(out, "'");
    if (n > 32) sqlite3_str_appendf(out, "\xE2\x80\xA6 (%d bytes)", n);
    return;
  }
  default: {
    const char *text = (const char *)sqlite3_column_text(s, i);
    if (text) put_text(out, text, sqlite3_column_bytes(s, i));
  }
  }
}

// put_rows writes a table, and how it ended.
static int put_rows(sqlite3_str *out, sqlite3_stmt *s, int limit) {
  int columns = sqlite3_column_count(s), rows = 0, rc;
  if (!columns) {
    sqlite3_str_appendall(out, "The statement has no result.\n");
    return SQLITE_OK;
  }
  for (int i = 0; i < columns; i++) {
    sqlite3_str_appendall(out, "| ");
    put_text(out, sqlite3_column_name(s, i), (int)strlen(sqlite3_column_name(s, i)));
    sqlite3_str_appendall(out, " ");
  }
  sqlite3_str_appendall(out, "|\n");
  for (int i = 0; i < columns; i++) sqlite3_str_appendall(out, "|---");
  sqlite3_str_appendall(out, "|\n");
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    if (rows == limit || sqlite3_str_length(out) > MAX_ANSWER) {
      sqlite3_str_appendf(out, "\nThe first %d rows; there are more. Raise limit, select less, or use LIMIT and OFFSET.\n", rows);
      return SQLITE_OK;
    }
    for (int i = 0; i < columns; i++) {
      sqlite3_str_appendall(out, "| ");
      put_cell(out, s, i);
      sqlite3_str_appendall(out, " ");
    }
    sqlite3_str_appendall(out, "|\n");
    rows++;
  }
  sqlite3_str_appendf(out, rows == 1 ? "\n%d row.\n" : "\n%d rows.\n", rows);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void run(sqlite3 *db, const char *args, const char *note) {
  sqlite3_stmt *s = NULL, *second = NULL;
  const char *tail = NULL;
  int rc = sqlite3_prepare_v2(db, elf_string(args, "sql", ""), -1, &s, &tail);
  if (rc != SQLITE_OK) {
    explain(db, rc);
    return;
  }
  if (!s) {
    elf_error("The statement is empty.");
    return;
  }
  if (sqlite3_prepare_v2(db, tail, -1, &second, NULL) != SQLITE_OK || second) {
    elf_error("There is more than one statement. Send them one by one.");
    return;
  }
  if (!sqlite3_stmt_readonly(s)) {
    elf_error("The statement would write. This tool only reads.");
    return;
  }
  if (!bind_params(s, elf_find(args, "params"))) return;
  double asked = elf_number(args, "limit", DEFAULT_ROWS);
  int limit = asked < 1 ? DEFAULT_ROWS : asked > MAX_ROWS ? MAX_ROWS : (int)asked;
  sqlite3_str *out = sqlite3_str_new(db);
  if ((rc = put_rows(out, s, limit)) != SQLITE_OK || (rc = sqlite3_str_errcode(out)) != SQLITE_OK) {
    explain(db, rc);
    return;
  }
  elf_text("%s%s", sqlite3_str_value(out), note);
}

static void query(const char *args) {
  const char *note;
  sqlite3 *db = open_database(args, &note);
  if (db) run(db, args, note);
}

static long long count(sqlite3 *db, const char *table) {
  sqlite3_stmt *s = NULL;
  char *sql = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table);
  long long n = -1;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) n = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  sqlite3_free(sql);
  return n;
}

static void schema(const char *args) {
  const char *note;
  sqlite3 *db = open_database(args, &note);
  if (!db) return;
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(db,
      "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
      "ORDER BY type = 'index', type = 'trigger', name", -1, &s, NULL);
  sqlite3_str *out = sqlite3_str_new(db);
  while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
    const char *type = (const char *)sqlite3_column_text(s, 0), *name = (const char *)sqlite3_column_text(s, 1);
    const char *sql = (const char *)sqlite3_column_text(s, 2);
    sqlite3_str_appendf(out, "%s %s", type ? type : "?", name ? name : "?");
    long long n = type && name && !strcmp(type, "table") ? count(db, name) : -1;
    if (n >= 0) sqlite3_str_appendf(out, " (%lld rows)", n);
    sqlite3_str_appendf(out, "\n  %s\n", sql ? sql : "(made by SQLite)");
    rc = SQLITE_OK;
    if (sqlite3_str_length(out) > MAX_SCHEMA) {
      sqlite3_str_appendall(out, "\xE2\x80\xA6\nThe rest is left out. Query sqlite_schema for it.\n");
      rc = SQLITE_DONE;
    }
  }
  if (rc != SQLITE_DONE) {
    explain(db, rc);
    return;
  }
  if (!sqlite3_str_length(out)) sqlite3_str_appendall(out, "The database has no tables.\n");
  elf_text("%s%s", sqlite3_str_value(out), note);
}

ELF_TOOLS({"sqlite_query", query}, {"sqlite_schema", schema})
