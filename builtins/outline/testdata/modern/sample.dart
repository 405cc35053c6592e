library sample;
import 'dart:async';

/// A shape.
sealed class Shape {}

base mixin Walker on Shape { void walk() {} }

final class Circle extends Shape with Walker implements Comparable<Circle> {
  /// The radius.
  final double r;
  const Circle(this.r);
  Circle.unit() : r = 1;
  factory Circle.from(Map<String, dynamic> j) => Circle(j['r'] as double);

  /// The area.
  double get area => 3.14 * r * r;
  set scale(double s) {}
  @override
  int compareTo(Circle other) { void hidden() {} return 0; }
  static Future<void> load({required String path}) async {}
  bool operator ==(Object o) => o is Circle;
}

abstract interface class Drawable { void draw(); }
mixin class Both {}

enum Level { low(1), high(2); const Level(this.n); final int n; String label() => '$n'; }

extension Fancy on String { String shout() => toUpperCase(); }
extension type Id(int raw) implements int { bool get ok => raw > 0; }

typedef Handler = void Function(int);

// Describes it.
String describe(Shape s) => switch (s) {
  Circle(r: var r) when r > 1 => 'big',
  Circle() => 'small',
  _ => 'other',
};

(int, {String name}) record() => (1, name: 'x');

int get top => 1;
var counter = 0;

Future<void> main() async {
  final (a, name: b) = record();
  if (a case > 0 && < 10) print('$a $b ${<int>[...?null, if (true) 1]}');
}
