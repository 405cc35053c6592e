#include <stdio.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A point. */
struct point { int x, y; struct { int z; } in; };
union value { int i; float f; };
enum color { RED, GREEN = 2 };

// Named by typedef.
typedef struct { int a; } anon_t;
typedef struct node { struct node *next; } node_t, *node_p;
typedef int (*callback)(void *, size_t);
typedef unsigned long long u64;

static const char *const names[] = { "a", "b" };
int counter = 0;
extern int declared(int);

#ifdef FAST
/**
 * Adds two numbers.
 */
static inline int add(int a, int b)
{
	_Static_assert(sizeof(int) == 4, "int");
	return a + b;
}
#else
int *slow(const struct point *p) { return NULL; }
#endif

int (*get_handler(int n))(void) { return 0; }

int
main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {}
	return 0;
}
