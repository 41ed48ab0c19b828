//! Actions, and the triggers of resources.

use addrs::InstanceKey;

use super::{check, config, module};
use crate::{ActionEvent, ActionFailure, ActionKey};

const TRIGGER: &str = "resource \"x_y\" \"a\" {\n  lifecycle {\n    action_trigger {\n      events     = [after_create, before_destroy]\n      \
                       condition  = true\n      actions    = [action.x_do.one, action.x_do.many[count.index], action.x_do.many[\"k\"]]\n      \
                       on_failure = taint\n    }\n  }\n}\naction \"x_do\" \"one\" {\n  config {\n    a = 1\n  }\n}\n";

#[test]
fn triggers_name_actions_with_their_keys() {
    let module = module(TRIGGER);
    let resource = module.managed_resources().next().unwrap();
    let trigger = &resource.lifecycle.action_triggers[0];
    assert_eq!(trigger.events, [ActionEvent::AfterCreate, ActionEvent::BeforeDestroy]);
    assert_eq!(trigger.on_failure, ActionFailure::Taint);
    assert!(trigger.condition.is_some());
    let keys: Vec<_> = trigger.actions.iter().map(|a| a.key.clone()).collect();
    assert_eq!(
        keys,
        [
            ActionKey::Static(InstanceKey::None),
            ActionKey::CountIndex,
            ActionKey::Static(InstanceKey::String("k".into())),
        ]
    );
    let action = module.actions.values().next().unwrap();
    assert_eq!(action.address.to_string(), "action.x_do.one");
    assert_eq!(action.provider.to_string(), "registry.terraform.io/hashicorp/x");
    assert!(action.config_body().attribute("a").is_some());
}

#[test]
fn json_has_keywords_and_references_in_quotes() {
    let text = r#"{"resource": {"x_y": {"a": {"lifecycle": {"action_trigger": {
        "events": ["before_update"], "actions": ["action.x_do.one[each.key]"], "on_failure": "continue"}}}}},
        "action": {"x_do": {"one": {"config": {"a": 1}, "for_each": {}}}}}"#;
    let config = config(&[("main.tf.json", text)]);
    let module = &config.root.module;
    let resource = module.managed_resources().next().unwrap();
    let trigger = &resource.lifecycle.action_triggers[0];
    assert_eq!(trigger.events, [ActionEvent::BeforeUpdate]);
    assert_eq!(trigger.on_failure, ActionFailure::Continue);
    assert_eq!(trigger.actions[0].key, ActionKey::EachKey);
    assert!(module.actions.values().next().unwrap().for_each.is_some());
}

#[test]
fn an_override_file_changes_an_action_and_replaces_all_triggers() {
    let over = "resource \"x_y\" \"a\" {\n  lifecycle {\n    action_trigger {\n      events  = [after_update]\n      actions = \
                [action.x_do.one]\n    }\n  }\n}\naction \"x_do\" \"one\" {\n  config {\n    b = 2\n  }\n}\n";
    let config = config(&[("main.tf", TRIGGER), ("a_override.tf", over)]);
    let module = &config.root.module;
    let resource = module.managed_resources().next().unwrap();
    assert_eq!(resource.lifecycle.action_triggers.len(), 1);
    assert_eq!(resource.lifecycle.action_triggers[0].events, [ActionEvent::AfterUpdate]);
    let body = module.actions.values().next().unwrap().config_body();
    assert!(body.attribute("a").is_some() && body.attribute("b").is_some());
}

#[test]
fn what_is_wrong_with_a_trigger_is_reported_at_its_place() {
    check(
        "resource \"x_y\" \"a\" {\n lifecycle {\n  action_trigger {\n   events = [sometimes]\n   actions = [x_y.b, module.m.a, \
         action.x_do.a.b, [action.x_do.a]]\n   on_failure = no\n  }\n }\n}\n",
        "error main.tf:3,3-17 No events specified
         error main.tf:4,14-23 Invalid \"event\" value sometimes
         error main.tf:5,15-20 Invalid action argument inside action_triggers
         error main.tf:5,22-32 Invalid reference to action outside this module
         error main.tf:5,34-49 Unexpected attribute in action reference
         error main.tf:5,51-66 Invalid instance reference
         error main.tf:6,17-19 Invalid \"on_failure\" keyword",
    );
}
