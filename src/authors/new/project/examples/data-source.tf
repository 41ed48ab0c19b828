data "sample_note" "shopping" {
  name = "shopping"
}

output "shopping" {
  value = data.sample_note.shopping.text
}
