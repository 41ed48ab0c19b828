// A provider on the raw protocol that answers one request with a value for a write-only attribute: the one that the argument
// "fault" names.
package main

import (
	"context"
	"encoding/json"
	"log"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const address = "example.com/test/secrets"

type values = map[string]tftypes.Value

var schema = &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
	{Name: "id", Type: tftypes.String, Computed: true},
	{Name: "fault", Type: tftypes.String, Optional: true},
	{Name: "secret", Type: tftypes.String, Optional: true, WriteOnly: true},
}}}

// What a host of this protocol level does not ask for here is not implemented.
type provider struct{ tfprotov6.ProviderServer }

func main() {
	server := func() tfprotov6.ProviderServer { return provider{} }
	if err := tf6server.Serve(address, server); err != nil {
		log.Fatal(err)
	}
}

func str(text string) tftypes.Value { return tftypes.NewValue(tftypes.String, text) }

func read(value *tfprotov6.DynamicValue) (values, error) {
	object, err := value.Unmarshal(schema.ValueType())
	var attributes values
	if err == nil && !object.IsNull() {
		err = object.As(&attributes)
	}
	return attributes, err
}

// An object, with the secret in it if this is the request with the fault.
func write(attributes values, request string) (*tfprotov6.DynamicValue, error) {
	ty := schema.ValueType()
	object := tftypes.NewValue(ty, nil)
	if attributes != nil {
		var fault string
		if value := attributes["fault"]; value.IsKnown() && !value.IsNull() {
			if err := value.As(&fault); err != nil {
				return nil, err
			}
		}
		attributes["secret"] = tftypes.NewValue(tftypes.String, nil)
		if fault == request {
			attributes["secret"] = str("leaked")
		}
		object = tftypes.NewValue(ty, attributes)
	}
	value, err := tfprotov6.NewDynamicValue(ty, object)
	return &value, err
}

func faultOf(attributes values) string {
	var fault string
	if value, ok := attributes["fault"]; ok && value.IsKnown() && !value.IsNull() {
		_ = value.As(&fault)
	}
	return fault
}

func (provider) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return &tfprotov6.GetMetadataResponse{}, nil
}

func (provider) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &tfprotov6.ServerCapabilities{MoveResourceState: true},
		Provider:           &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{}},
		ResourceSchemas:    map[string]*tfprotov6.Schema{"secrets_one": schema},
	}, nil
}

func (provider) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (provider) ValidateProviderConfig(_ context.Context, req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config}, nil
}

func (provider) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (provider) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func (provider) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (provider) UpgradeResourceState(_ context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	object, err := req.RawState.Unmarshal(schema.ValueType())
	if err != nil {
		return nil, err
	}
	var attributes values
	if err := object.As(&attributes); err != nil {
		return nil, err
	}
	state, err := write(attributes, "upgrade")
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: state}, err
}

func (provider) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	attributes, err := read(req.CurrentState)
	if err != nil {
		return nil, err
	}
	state, err := write(attributes, "read")
	return &tfprotov6.ReadResourceResponse{NewState: state}, err
}

func (provider) PlanResourceChange(_ context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	prior, err := read(req.PriorState)
	if err != nil {
		return nil, err
	}
	planned, err := read(req.ProposedNewState)
	if err != nil {
		return nil, err
	}
	if planned != nil && prior == nil {
		planned["id"] = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	}
	legacy := faultOf(planned) == "legacy plan"
	request := "plan"
	if legacy {
		request = "legacy plan"
	}
	state, err := write(planned, request)
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: state, UnsafeToUseLegacyTypeSystem: legacy}, err
}

func (provider) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	planned, err := read(req.PlannedState)
	if err != nil {
		return nil, err
	}
	if planned != nil && !planned["id"].IsKnown() {
		planned["id"] = str("new")
	}
	legacy := faultOf(planned) == "legacy apply"
	request := "apply"
	if legacy {
		request = "legacy apply"
	}
	state, err := write(planned, request)
	return &tfprotov6.ApplyResourceChangeResponse{NewState: state, UnsafeToUseLegacyTypeSystem: legacy}, err
}

func (provider) ImportResourceState(_ context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	state, err := write(values{"id": str(req.ID), "fault": str("import")}, "import")
	one := &tfprotov6.ImportedResource{TypeName: req.TypeName, State: state}
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{one}}, err
}

func (provider) MoveResourceState(_ context.Context, req *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	var stored struct{ ID string }
	if err := json.Unmarshal(req.SourceState.JSON, &stored); err != nil {
		return nil, err
	}
	state, err := write(values{"id": str(stored.ID), "fault": str("move")}, "move")
	return &tfprotov6.MoveResourceStateResponse{TargetState: state}, err
}
