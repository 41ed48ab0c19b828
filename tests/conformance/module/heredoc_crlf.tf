# Line breaks of another system.
locals {
  r_plain = <<EOT
a
  b
EOT

  r_indented = <<-EOT
    a
      ${"b"}

    c
  EOT

  r_directive = <<-EOT
    %{for x in ["a", "b"]~}
    ${x}
    %{endfor~}
    end
  EOT

  r_strip = <<EOT
a
${~"b"~}
c
EOT
}
