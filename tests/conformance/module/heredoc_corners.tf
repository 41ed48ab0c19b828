# Corners of indentation, strip markers and escapes in texts of several lines.
locals {
  c_tabs_spaces = <<-EOT
	  tab first
	two
    EOT

  c_blank_short = <<-EOT
      a
  
      b
    EOT

  c_blank_long = <<-EOT
      a
            
      b
    EOT

  c_value_first = <<-EOT
      ${"v"} a
        b
    EOT

  c_value_multi = <<-EOT
      ${"l1\n  l2"}
        b
    EOT

  c_directive_first = <<-EOT
    %{if true}
        a
    %{endif}
      b
  EOT

  c_escape_first = <<-EOT
      $${a}
        %%{b}
    EOT

  c_none = <<-EOT
  EOT

  c_blanks_only = <<-EOT

      

  EOT

  c_marker_inside = <<EOT
EOT EOT
 not EOT
EOTX
EOT

  c_marker_indented = <<EOT
  a
    EOT

  c_marker_dash = <<E-T
  a
E-T

  c_quotes = <<EOT
"a" 'b' \ \n \"
EOT

  c_dollar = <<EOT
$ $$ % %% $a %a $$$${x}
EOT

  c_dollar_end = <<EOT
a$
b%
EOT

  c_in_call = upper(<<-EOT
    x
      y
  EOT
  )

  c_in_object = {
    a = <<-EOT
      x
    EOT
    b = 1
  }

  c_trimmed = trimspace(<<EOT

  x

EOT
  )

  c_less_later = <<-EOT
        a
      b
    c
      d
    EOT

  c_one_column = <<-EOT
    a
   b
    EOT

  c_unicode = <<-EOT
      é
        日本
    EOT

  c_nbsp = <<-EOT
      a
     b
    EOT

  c_strip_both = <<-EOT
    a

      ${~"b"~}

    c
  EOT

  c_strip_for = <<-EOT
    list:
    %{~for x in ["a", "b"]}
      - ${x}
    %{~endfor}
    end
  EOT

  c_strip_for_right = <<-EOT
    list:
    %{for x in ["a", "b"]~}
      - ${x}
    %{endfor~}
    end
  EOT

  c_strip_two = <<-EOT
    a ${"b"~}
    ${~"c"} d
  EOT

  c_strip_end = <<EOT
  a ${"b"~}
EOT

  c_strip_start = <<EOT

${~"b"} c
EOT

  c_if_else = <<-EOT
    %{if false~}
    yes
    %{else~}
    no
    %{endif~}
  EOT

  c_nested_for = <<-EOT
    %{for x in ["a", "b"]~}
    ${x}:
    %{for y in [1, 2]~}
      ${x}${y}
    %{endfor~}
    %{endfor~}
  EOT

  c_map_for = <<EOT
%{for k, v in { b = 1, a = [2] }}${k}=${jsonencode(v)};%{endfor}
EOT

  c_for_empty = <<-EOT
    a
    %{for x in []}
    never
    %{endfor}
    b
  EOT

  c_inner_quotes = <<EOT
${"a ${"b ${"c"}"}"}
EOT

  c_inner_object = <<EOT
${jsonencode({
  a = 1
  b = [
    2,
  ]
})}
EOT

  c_inner_comment = <<EOT
a ${1 + # one
  2 /* two */} b
EOT

  c_unknown = <<-EOT
    a ${var.us}
      b
  EOT

  c_unknown_for = <<-EOT
    a
    %{for x in var.ul}
    ${x}
    %{endfor}
  EOT

  c_sensitive = <<-EOT
    a ${var.s}
  EOT

  c_null_if = <<-EOT
    %{if var.null == null}null%{else}${var.null}%{endif}
  EOT
}
