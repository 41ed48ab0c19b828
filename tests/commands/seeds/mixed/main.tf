resource "terraform_data" "one" { input = "a" }
resource "terraform_data" "many" {
  count = 2
  input = count.index
}
resource "terraform_data" "each" {
  for_each = toset(["x", "y"])
  input    = each.key
}
module "m" { source = "./m" }
module "n" {
  source = "./m"
  count  = 2
}
output "o" { value = terraform_data.one.output }
output "s" {
  value     = "secret"
  sensitive = true
}
