@file:JvmName("Sample")
package com.example

import kotlin.math.*

/** A user. */
@Serializable
data class User<out T : Any>(val name: String, var age: Int = 0) : Base(name), Face by face {
    // The id.
    val id: Int by lazy { 1 }
    var full: String
        get() = name
        set(value) { field = value }

    constructor(x: Int) : this("$x")
    init { println("x") }

    /** Greets. */
    suspend inline fun <reified R> greet(noinline f: (Int) -> R): R? {
        fun hidden() {}
        return when (val x = f(1)) { is String -> null; else -> x }
    }
    companion object {
        const val MAX = 1_000
    }
    inner class Inner
}

sealed interface Shape {
    data object Empty : Shape
    fun area(): Double
}
enum class Color(val rgb: Int) { RED(0xFF0000), GREEN(0x00FF00);
    fun hex() = rgb.toString(16)
}
object Single {
    fun run() {}
}
fun interface Action {
    operator fun invoke()
}
@JvmInline value class Id(val raw: Long)
typealias Handler = suspend (Int) -> Unit
annotation class Mark

fun String.shout(): String = uppercase() + "!"
val (a, b) = 1 to 2
val <T> List<T>.second: T get() = this[1]
context(Logger)
fun log(message: String) { }
