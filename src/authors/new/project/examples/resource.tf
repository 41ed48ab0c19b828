resource "sample_note" "shopping" {
  name = "shopping"
  text = "bread"
}
