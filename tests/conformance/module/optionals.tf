# Types with optional attributes, at depth.

variable "o_set" {
  type    = set(object({ a = optional(string, "d"), b = optional(number) }))
  default = [{}, { a = null }, { a = "x", b = "2" }, { a = "d" }]
}

variable "o_tuple" {
  type    = tuple([object({ a = optional(string, "d") }), list(object({ b = optional(bool, true) }))])
  default = [{}, [{}, { b = false }, { b = null }]]
}

variable "o_map_of_map" {
  type    = map(map(object({ n = optional(number, 1) })))
  default = { x = { y = {}, z = { n = "5" } }, w = {} }
}

variable "o_nested_default" {
  type = object({
    outer = optional(object({
      inner = optional(object({
        v = optional(string, "deep")
        w = optional(list(string), ["a", "b"])
      }), {})
      other = optional(string)
    }), {})
  })
  default = {}
}

variable "o_partial_default" {
  type = object({
    outer = optional(object({
      inner = optional(object({ v = optional(string, "deep") }), { v = "given" })
    }), { inner = {} })
  })
  default = {}
}

variable "o_null_default" {
  type    = object({ a = optional(object({ b = optional(string, "x") })) })
  default = { a = null }
}

variable "o_object_from_map" {
  type    = object({ a = optional(string, "d"), b = optional(string), c = string })
  default = { c = 1, extra = [] }
}

variable "o_converted_default" {
  type    = object({ a = optional(string, 5), b = optional(list(string), [1, true]), c = optional(set(number), ["2", 1, "1"]) })
  default = {}
}

variable "o_any" {
  type    = object({ a = optional(any), b = optional(list(any), [1, "x"]), c = optional(map(any), {}) })
  default = { a = { q = 1 } }
}

variable "o_any_list" {
  type    = list(any)
  default = [1, "x", null]
}

variable "o_any_objects" {
  type    = list(any)
  default = [{ a = 1, b = null }, { a = "x", b = "y" }]
}

variable "o_any_map" {
  type    = map(any)
  default = { a = [1], b = ["x", "y"] }
}

variable "o_list_null" {
  type    = list(object({ a = optional(string, "d") }))
  default = [null, {}]
}

variable "o_map_null" {
  type    = map(object({ a = optional(string, "d") }))
  default = { x = null, y = {} }
}

variable "o_unknown" {
  type = object({ a = optional(string, "d"), b = list(object({ c = optional(number, 1) })) })
}

variable "o_not_null" {
  type     = object({ a = optional(string, "d") })
  default  = { a = null }
  nullable = false
}

variable "o_number_strings" {
  type    = list(string)
  default = [1, 1.50, true, "x", 1e3, 100000000000000000000000]
}

variable "o_string_numbers" {
  type    = list(number)
  default = ["1", "1e3", "007", "-0.50"]
}

variable "o_sensitive" {
  type      = object({ a = optional(string, "d"), b = string })
  default   = { b = "x" }
  sensitive = true
}
