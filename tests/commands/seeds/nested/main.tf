module "a" { source = "./a" }
module "c" {
  source   = "./a"
  for_each = toset(["k"])
}
