package com.example

import kotlin.math.*

/** A user. */
data class User<out T : Any>(val name: String, var age: Int = 0) : Base(name) {
    // The id.
    val id: Int by lazy { 1 }

    /** Greets. */
    suspend fun <R> greet(f: (Int) -> R): R? {
        fun hidden() {}
        return null
    }
    companion object {
        const val MAX = 1
    }
    inner class Inner
}

sealed interface Shape {
    fun area(): Double
}
enum class Color(val rgb: Int) {
    RED(1),
    GREEN(2)
}
object Single {
    fun run() {}
}
typealias Handler = (Int) -> Unit

fun String.shout(): String = uppercase() + "!"
val pi: Double = 3.14
