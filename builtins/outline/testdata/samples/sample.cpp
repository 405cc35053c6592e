#include <vector>
namespace outer::inner {

/// A shape.
template <typename T, auto N = 3>
requires std::integral<T>
class Shape final : public Base<T> {
public:
    /// Makes it.
    explicit Shape(T t) noexcept : t_(std::move(t)) {}
    virtual ~Shape() = default;
    [[nodiscard]] constexpr auto area() const -> double;
    Shape& operator=(const Shape&) = delete;
    explicit operator bool() const { return true; }
    struct Part { int n; };
    enum class Kind : unsigned char { A, B };
    static inline int count = 0;
private:
    T t_;
};

template <class T> concept Addable = requires(T a) { a + a; };
using Alias = std::vector<int>;
typedef int number;
union U { int i; };

template <typename... Ts>
auto sum(Ts&&... ts) { return (ts + ... + 0); }

} // namespace outer::inner

namespace { int hidden() { return 0; } }

extern "C" {
void exported(int);
}

// Defined outside.
double outer::inner::Shape<int>::area() const { auto f = [&]<class X>(X x) { return x; }; return 1'000.0; }
std::ostream& operator<<(std::ostream& os, const U& u) { if (auto x = 1; x <=> 0) {} co_return; }
int main() { for (auto& [k, v] : m) {} }
