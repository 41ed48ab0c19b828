terraform {
  required_providers {
    sample = {
      source = "example/sample"
    }
  }
}

provider "sample" {
  directory = "notes"
}
