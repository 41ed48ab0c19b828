output "title" {
  value = provider::sample::title("Shopping\nbread\n")
}
