resource "random_string" "in" {
  length = 2
}
