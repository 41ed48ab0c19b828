# Texts of several lines, which cannot be typed in one.
locals {
  h_plain = <<EOT
a
  b ${1 + 1}
EOT

  h_indented = <<-EOT
    first
      second
    third
  EOT

  h_uneven = <<-EOT
      deep
    shallow
      ${"x"} deep
    EOT

  h_blank = <<-EOT
    a

      b
    EOT

  h_tabs = <<-EOT
	one
		two
	EOT

  h_directive = <<-EOT
    %{for x in ["a", "b"]}
    item ${x}
    %{endfor}
  EOT

  h_stripped = <<-EOT
    %{for x in ["a", "b"]~}
    item ${x}
    %{endfor~}
    end
  EOT

  h_both = <<-EOT
    start
    %{~if true~}
      yes
    %{~else~}
      no
    %{~endif~}
    end
  EOT

  h_escapes = <<EOT
$${a} %%{b} \n "quoted"
EOT

  h_empty = <<EOT
EOT

  h_interpolated = <<-EOT
    ${"x\n  y"}
      z
  EOT

  h_list = [<<EOT
one
EOT
    , <<-EOT
      two
    EOT
  ]

  h_only = <<-EOT
    ${true}
  EOT

  h_trailing = <<-EOT
    a  
    ${"b"}  
  EOT

  h_nested = <<-EOT
    outer ${<<-INNER
      inner
    INNER
}
  EOT

  h_strip_left = <<-EOT
    a
      ${~"b"}
    ${"c"~}
      d
  EOT
}
