//! Schema of `connection` blocks, with the arguments of all connection types.

use std::sync::LazyLock;

use cty::Type;
use schema::{AttributeSchema, AttributeType, BlockSchema, Schema};

pub fn connection_schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        // The arguments for SSH and WinRM together: `type` chooses between them.
        let strings = [
            "type",
            "user",
            "password",
            "host",
            "timeout",
            "script_path",
            "target_platform",
            "private_key",
            "certificate",
            "host_key",
            "agent_identity",
            "proxy_scheme",
            "proxy_host",
            "proxy_user_name",
            "proxy_user_password",
            "bastion_host",
            "bastion_host_key",
            "bastion_user",
            "bastion_password",
            "bastion_private_key",
            "bastion_certificate",
            "cacert",
        ];
        let numbers = ["port", "proxy_port", "bastion_port"];
        let bools = ["agent", "https", "insecure", "use_ntlm"];
        let attribute = |ty: Type, required: bool| AttributeSchema {
            ty: AttributeType::Plain(ty),
            required,
            optional: !required,
            ..AttributeSchema::default()
        };
        let attributes = strings
            .iter()
            .map(|n| (*n, Type::String))
            .chain(numbers.iter().map(|n| (*n, Type::Number)))
            .chain(bools.iter().map(|n| (*n, Type::Bool)))
            .map(|(name, ty)| (name.into(), attribute(ty, name == "host")));
        Schema::new(
            0,
            BlockSchema {
                attributes: attributes.collect(),
                ..BlockSchema::default()
            },
        )
    });
    &SCHEMA
}
