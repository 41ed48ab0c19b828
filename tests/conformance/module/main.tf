# What the recorded expressions refer to. Variables without a default are unknown in the console.

variable "s" {
  type      = string
  default   = "secret"
  sensitive = true
}

variable "snum" {
  type      = number
  default   = 2
  sensitive = true
}

variable "slist" {
  type      = list(string)
  default   = ["p", "q"]
  sensitive = true
}

variable "smap" {
  type      = map(string)
  default   = { k = "v" }
  sensitive = true
}

variable "sbool" {
  type      = bool
  default   = true
  sensitive = true
}

variable "snull" {
  type      = string
  default   = null
  sensitive = true
}

variable "e" {
  type      = string
  default   = "fleeting"
  ephemeral = true
}

variable "list" {
  type    = list(string)
  default = ["a", "b", "c"]
}

variable "nums" {
  type    = list(number)
  default = [3, 1, 2]
}

variable "map" {
  type    = map(number)
  default = { a = 1, b = 2 }
}

variable "set" {
  type    = set(string)
  default = ["x", "y"]
}

variable "null" {
  type    = string
  default = null
}

variable "nulllist" {
  type    = list(string)
  default = null
}

variable "nullmap" {
  type    = map(string)
  default = null
}

variable "nullobj" {
  type    = object({ a = string })
  default = null
}

variable "objs" {
  type    = list(object({ id = string, n = number }))
  default = [{ id = "i0", n = 0 }, { id = "i1", n = 1 }]
}

variable "obj" {
  type    = object({ name = string, tags = map(string), opt = optional(string) })
  default = { name = "nm", tags = { k = "v" } }
}

variable "deep" {
  type = map(object({
    size = optional(number, 3)
    rules = optional(list(object({
      port  = number
      proto = optional(string, "tcp")
      tags  = optional(map(string), { from = "default" })
    })), [{ port = 1 }])
    pair = optional(tuple([string, number]))
  }))
  default = {
    a = {}
    b = { size = null, rules = [{ port = "80" }, { port = 443, proto = null, tags = {} }] }
    c = { size = "7", rules = null, pair = ["x", "1"], extra = "dropped" }
  }
}

variable "mixed" {
  type    = any
  default = [{ a = 1 }, { a = "x" }]
}

variable "us" {
  type = string
}

variable "uss" {
  type      = string
  sensitive = true
}

variable "un" {
  type = number
}

variable "ub" {
  type = bool
}

variable "ul" {
  type = list(string)
}

variable "um" {
  type = map(string)
}

variable "uset" {
  type = set(string)
}

variable "uo" {
  type = object({ a = string, b = number })
}

variable "ut" {
  type = tuple([string, number])
}

variable "unn" {
  type     = string
  nullable = false
}

variable "ua" {
  type = any
}

locals {
  t      = "hello $${name}!"
  loop   = "%%{ for x in xs }<$${x}>%%{ endfor }"
  broken = "$${"
  u      = terraform_data.u.output
  inner  = { list = [1, "a", null, { k = "v" }], empty = {} }
  mixed  = [var.s, "plain", terraform_data.u.id]
  big    = 123456789012345678901234567890.123456789
  text   = "one\ntwo\n"
  many   = [for i in range(3) : { i = i, s = "n${i}" }]
  marked = { open = 1, hidden = var.s }
  key1   = file("${path.module}/key1.pem")
  key8   = file("${path.module}/key8.pem")
  keyssh = file("${path.module}/keyssh.pem")
  cipher = trimspace(file("${path.module}/cipher.txt"))
}

resource "terraform_data" "u" {
  input = "x"
}

resource "terraform_data" "counted" {
  count = 2
  input = count.index
}

resource "terraform_data" "each" {
  for_each = toset(["k"])
  input    = each.key
}

module "one" {
  source = "./child"
  name   = "one"
}

module "many" {
  source = "./child"
  count  = 2
  name   = "m${count.index}"
}

module "keyed" {
  source   = "./child"
  for_each = { x = 1, y = 2 }
  name     = each.key
}
