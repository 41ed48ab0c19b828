//! Examples for the pages of commands: arguments and their effect.

/// Returns the examples of a command.
pub fn for_command(path: &str) -> &'static [(&'static str, &'static str)] {
    // The words `env …` are old names of the workspace commands.
    let path = path.replacen("env ", "workspace ", 1);
    EXAMPLES
        .iter()
        .find(|(command, _)| *command == path)
        .map_or(&[], |(_, examples)| examples)
}

type Examples = &'static [(&'static str, &'static [(&'static str, &'static str)])];

const EXAMPLES: Examples = &[
    (
        "init",
        &[
            (
                "",
                "Install the modules and providers that are missing, and set up the backend.",
            ),
            (
                "-upgrade",
                "The same, with the newest versions that the configuration allows.",
            ),
            (
                "-backend-config=prod.tfbackend -reconfigure",
                "Use another backend, and leave the state of the one before where it is.",
            ),
        ],
    ),
    (
        "validate",
        &[
            (
                "",
                "Check the configuration in this directory, without state and variables.",
            ),
            (
                "-json",
                "The same, with problems and their places for an editor or a CI job.",
            ),
            (
                "-fix -diff",
                "Show how misspelt names and other slips would be mended. Without -diff they are.",
            ),
        ],
    ),
    (
        "plan",
        &[
            (
                "-out=tfplan",
                "Write the plan to a file, so that apply does exactly what was reviewed.",
            ),
            (
                "-var-file=prod.tfvars -target=module.network",
                "Plan one module and what it depends on.",
            ),
            (
                "-summary",
                "Of a large plan, show what is replaced and destroyed, and counts of the rest.",
            ),
            (
                "-verbosity=brief",
                "Show one line an object, with the attributes that change or force its replacement.",
            ),
            (
                "-detailed-exitcode",
                "Status 2 if there are changes, 0 if there are none: for CI jobs.",
            ),
        ],
    ),
    (
        "apply",
        &[
            ("", "Plan, ask, and apply."),
            (
                "tfplan",
                "Apply a plan that was written by plan -out; nothing is asked.",
            ),
            (
                "-auto-approve -replace='aws_instance.web[0]'",
                "Replace one instance, and all that has to change with it.",
            ),
        ],
    ),
    (
        "destroy",
        &[
            ("", "Plan to destroy everything, ask, and do it."),
            ("-target=module.test", "Destroy one module, and what depends on it."),
        ],
    ),
    (
        "completion",
        &[(
            "fish",
            "Print the script for fish: pipe it into source, or write it to a file in its completions directory.",
        )],
    ),
    (
        "console",
        &[
            (
                "",
                "Evaluate expressions with the configuration's values, as they are typed.",
            ),
            ("-plan", "The same, with the values that the next apply would give."),
        ],
    ),
    (
        "fmt",
        &[
            ("-recursive", "Reformat all files in this directory and below."),
            (
                "-check -diff",
                "Write nothing; show what would change, with status 3 if there is something.",
            ),
        ],
    ),
    (
        "force-unlock",
        &[(
            "6a1fb9d2-1c52-9a52-8f4c-0a1dc09a0e51",
            "Release the lock whose ID is in an error message.",
        )],
    ),
    (
        "get",
        &[(
            "-update",
            "Install the modules, the newest allowed versions of those that are there already.",
        )],
    ),
    (
        "docs",
        &[
            (
                "random_pet",
                "Describe a resource of a built-in provider, with an example.",
            ),
            ("cidrsubnet", "Describe a function."),
            (
                "-html=documentation",
                "Write pages about everything, to be read in a browser without a server.",
            ),
        ],
    ),
    (
        "doctor",
        &[
            (
                "",
                "Check the program, its settings, and this directory, without a network.",
            ),
            (
                "-network -json",
                "Ask the registries, too, and print the findings for a program.",
            ),
        ],
    ),
    (
        "explain",
        &[
            (
                "module.net.aws_subnet.a",
                "Show where each value of a resource comes from, what it depends on, and what depends on it.",
            ),
            (
                "-plan=tfplan 'aws_instance.web[\"a\"]'",
                "Of one instance, show also what a saved plan does to it and why.",
            ),
        ],
    ),
    (
        "graph",
        &[
            (
                "",
                "Print the order of the resources in the language of Graphviz: pipe it into dot -Tsvg.",
            ),
            (
                "-type=plan -format=mermaid",
                "Print everything that a plan evaluates, for a page of Markdown.",
            ),
            (
                "-format=html -plan=tfplan > graph.html",
                "Write a page on which a saved plan can be reviewed in a browser.",
            ),
            (
                "-json -plan=tfplan",
                "Print the resources, their order and what the plan does to each, for a program.",
            ),
        ],
    ),
    (
        "help",
        &[
            ("", "List the commands and the guides."),
            ("ci", "Show the guide about CI."),
            ("state mv", "Show the page of a command."),
            ("json validate", "Print the JSON Schema of what validate -json prints."),
            ("man | man -l -", "Read the manual page."),
        ],
    ),
    (
        "import",
        &[
            (
                "aws_instance.web i-0123456789abcdef0",
                "Manage an existing object by a resource block that is in the configuration.",
            ),
            (
                "'aws_instance.web[\"a\"]' i-0123456789abcdef0",
                "The same for one instance of a resource with for_each.",
            ),
        ],
    ),
    (
        "login",
        &[
            ("", "Get a token for HCP Terraform, with the browser, and keep it."),
            ("registry.example.com", "The same for another host."),
        ],
    ),
    ("logout", &[("registry.example.com", "Forget the token for a host.")]),
    (
        "metadata functions",
        &[(
            "-json",
            "Print the signatures of all functions: for editors and other tools.",
        )],
    ),
    (
        "modules",
        &[
            (
                "",
                "List the modules that the configuration calls, with sources and versions.",
            ),
            ("-json", "The same for a program."),
        ],
    ),
    (
        "pack",
        &[
            ("-out=site", "Carry the providers that this configuration needs"),
            (
                "-out=site -modules -include-config",
                "Carry its modules, and the configuration itself, too",
            ),
            ("-out=site -provider=hashicorp/aws@~>5.0", "Carry a provider by name"),
            ("-verify -trust=public.pem site", "Check every byte and the signature"),
        ],
    ),
    (
        "unpack",
        &[
            ("-from=site ./mirror", "Make a filesystem mirror of what a pack carries"),
            (
                "-from=site -config=prod ./prod",
                "Write the configuration prod that a pack carries into a directory",
            ),
        ],
    ),
    (
        "modules mirror",
        &[(
            "./modules",
            "Copy the remote modules into a directory, for a site without network.",
        )],
    ),
    (
        "output",
        &[
            ("", "Show all outputs; sensitive ones only by their names."),
            ("-show-sensitive", "Show all outputs, sensitive ones too."),
            ("-raw url", "Print one text as it is, for a shell script."),
            ("-json", "Print all outputs for a program, sensitive ones too."),
        ],
    ),
    (
        "provider check",
        &[
            (
                "./terraform-provider-zoo",
                "Check an executable, without configuring it.",
            ),
            (
                "-config=test.hcl -json .",
                "Check the newest executable of a project with plans and imports, for a program.",
            ),
        ],
    ),
    (
        "provider docs",
        &[
            (".", "Write the pages of the provider whose project this is."),
            (
                "-check ./terraform-provider-zoo",
                "In CI: fail if the pages in docs are not those of the executable.",
            ),
        ],
    ),
    (
        "provider test",
        &[
            (".", "Run the acceptance tests of a project with its newest executable."),
            (
                "-with=terraform -with=tofu -junit-xml=report.xml .",
                "Run them in other programs, with a report for CI.",
            ),
        ],
    ),
    (
        "provider new",
        &[(
            "-sdk=../monoform zoo",
            "Make the project of a provider zoo in terraform-provider-zoo, with the SDK of a copy of the repository.",
        )],
    ),
    (
        "provider release",
        &[
            (
                "-from=bin -sign=me@example.com 1.2.3",
                "Make archives, checksums and signature of the executables in bin, in the directory release.",
            ),
            (
                "-from=bin -mirror=mirror -source=example.com/me/zoo 1.2.3",
                "Put the release also into a mirror, from which init installs it.",
            ),
        ],
    ),
    (
        "providers",
        &[(
            "",
            "Show which modules and which parts of the state need which providers.",
        )],
    ),
    (
        "providers lock",
        &[(
            "-platform=linux_amd64 -platform=darwin_arm64",
            "Record the checksums of the packages for the machines of the whole team.",
        )],
    ),
    (
        "providers mirror",
        &[(
            "-platform=linux_amd64 ./mirror",
            "Copy the packages that the configuration needs into a directory, for a site without network.",
        )],
    ),
    (
        "providers serve",
        &[(
            "-listen=0.0.0.0:8443 -tls-cert=cert.pem -tls-key=key.pem ./mirror",
            "Serve the packages of a mirror to other machines.",
        )],
    ),
    (
        "providers schema",
        &[("-json", "Print the schemas of all providers of the configuration.")],
    ),
    (
        "query",
        &[
            ("", "List what the list blocks in the query files find."),
            (
                "-generate-config-out=found.tf",
                "Also write configuration and import blocks for it.",
            ),
        ],
    ),
    (
        "refresh",
        &[(
            "",
            "Update the state to what the objects are now. See apply -refresh-only, which asks first.",
        )],
    ),
    (
        "show",
        &[
            ("", "Show the current state."),
            ("tfplan", "Show a saved plan."),
            (
                "-json tfplan",
                "Print it for a program, with all values: also sensitive ones.",
            ),
            ("-format=markdown tfplan", "Print it as a comment for a pull request."),
        ],
    ),
    (
        "state diff",
        &[(
            "41 45",
            "Show what differs between the states after the runs 41 and 45.",
        )],
    ),
    (
        "state history",
        &[
            ("", "List the runs that have written the state, with what each changed."),
            ("aws_instance.web", "List the runs that changed one resource."),
        ],
    ),
    (
        "state identities",
        &[("-json", "Print the identities of the objects in the state.")],
    ),
    (
        "state serve",
        &[(
            "-listen=0.0.0.0:8444 -tls-cert=cert.pem -tls-key=key.pem -credentials=login",
            "Serve the states of the configured backend to other machines.",
        )],
    ),
    (
        "state query",
        &[
            (
                "\"SELECT address FROM current_objects WHERE type = 'aws_instance'\"",
                "List the objects of a type in all workspaces.",
            ),
            (
                "-json \"SELECT * FROM changes WHERE started_at > now() - interval '1 day'\"",
                "Print the changes of the last day for a program.",
            ),
        ],
    ),
    (
        "state restore",
        &[(
            "-run=41 aws_instance.web",
            "Bring the resource back into the state as it was recorded by the run 41.",
        )],
    ),
    (
        "state list",
        &[
            ("module.network", "List what the state has of one module."),
            ("-id=i-0123456789abcdef0", "Find the instance whose object has this id."),
            (
                "-json",
                "List instances with their providers and the keys of deposed objects.",
            ),
        ],
    ),
    (
        "state mv",
        &[
            (
                "aws_instance.web module.app.aws_instance.web",
                "Keep an object under another address. A moved block does it for everybody.",
            ),
            ("-dry-run module.a module.b", "Only say what would be moved."),
        ],
    ),
    ("state pull", &[("", "Print the state in the form of a state file.")]),
    (
        "state push",
        &[(
            "errored.tfstate",
            "Store a state that could not be stored at the end of an apply.",
        )],
    ),
    (
        "state replace-provider",
        &[(
            "hashicorp/aws registry.example.com/acme/aws",
            "Have another provider manage the objects.",
        )],
    ),
    (
        "state rm",
        &[(
            "module.old",
            "Forget the objects of a module without destroying them. A removed block does it for everybody.",
        )],
    ),
    (
        "state show",
        &[
            ("'aws_instance.web[0]'", "Show the values of one instance."),
            (
                "-at=41 'aws_instance.web[0]'",
                "Show it as it was after the run 41, where the backend has a history.",
            ),
        ],
    ),
    (
        "taint",
        &[(
            "aws_instance.web",
            "Have the next apply replace an object. See apply -replace, which shows it first.",
        )],
    ),
    ("untaint", &[("aws_instance.web", "Take that back.")]),
    (
        "test",
        &[
            ("", "Run all test files in this directory and in tests."),
            (
                "-filter=tests/network.tftest.hcl -verbose",
                "Run one file, and show the plan or state of each run.",
            ),
            ("-junit-xml=results.xml", "Also write a report that CI servers read."),
        ],
    ),
    (
        "self-check",
        &[
            (
                "",
                "Say what this executable is and carries, and whether all of it is whole.",
            ),
            (
                "-trust=release.pub",
                "The same, and require that what it carries is signed with this key.",
            ),
        ],
    ),
    (
        "version",
        &[(
            "-json",
            "Print versions of this program and of the providers in use, for a program.",
        )],
    ),
    (
        "workspace delete",
        &[("staging", "Delete a workspace whose state is empty.")],
    ),
    (
        "workspace list",
        &[("", "List the workspaces, with a star at the selected one.")],
    ),
    ("workspace new", &[("staging", "Make a workspace, and select it.")]),
    (
        "workspace select",
        &[(
            "-or-create staging",
            "Select a workspace, and make it where there is none of that name.",
        )],
    ),
    ("workspace show", &[("", "Print the name of the selected workspace.")]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{normalise, words};
    use crate::commands::{COMMANDS, find};

    #[test]
    fn each_command_has_examples_that_it_understands() {
        for command in COMMANDS {
            let examples = for_command(command.path);
            assert!(!examples.is_empty(), "{} has no example", command.path);
            let declared = command.declared(addrs::Program::MONOFORM);
            for (arguments, _) in examples {
                let words = words::split(arguments).unwrap();
                let normal =
                    normalise(&declared, command.refused, &words).unwrap_or_else(|e| panic!("{arguments}: {e:?}"));
                declared.clone().try_get_matches_from(normal).unwrap();
            }
        }
    }

    #[test]
    fn no_example_is_of_a_command_that_does_not_exist() {
        for (path, _) in EXAMPLES {
            assert!(find(path).is_some(), "{path}");
        }
    }
}
