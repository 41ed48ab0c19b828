# Run by: monoform provider test .
# The blocks and their arguments are in: monoform help provider

source = "example/sample"

config {
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
}

step "create" {
  config {
    resource "sample_note" "shopping" {
      name = "shopping"
      text = "bread"
    }
  }
  actions = { "sample_note.shopping" = "create" }
  planned "sample_note.shopping" {
    unknown = ["size"]
  }
  state "sample_note.shopping" {
    values = { text = "bread", size = 5 }
  }
  import "sample_note.shopping" {
    id = "shopping"
  }
}

step "update" {
  config {
    resource "sample_note" "shopping" {
      name = "shopping"
      text = "bread, milk"
    }

    data "sample_note" "shopping" {
      name = sample_note.shopping.name
    }

    output "title" {
      value = provider::sample::title("Shopping\nbread")
    }
  }
  actions = { "sample_note.shopping" = "update" }
  assert {
    condition     = state["data.sample_note.shopping"].text == "bread, milk" && outputs.title == "Shopping"
    error_message = "The note or its title is wrong."
  }
}

# Somebody else removes the note, so that it is made again.
step "note was removed by hand" {
  run     = [["rm", "notes/shopping"]]
  actions = { "sample_note.shopping" = "create" }
}

step "another name makes another note" {
  config {
    resource "sample_note" "shopping" {
      name = "other"
    }
  }
  actions = { "sample_note.shopping" = "replace" }
}

step "names that are paths are refused" {
  operation = "plan"
  config {
    resource "sample_note" "shopping" {
      name = "../other"
    }
  }
  expect_error = "cannot be the name of a note"
}

destroyed {
  config {
    data "sample_note" "other" {
      name = "other"
    }
  }
  expect_error = "There is no note"
}
