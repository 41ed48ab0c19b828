package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// On the protocol itself. Besides what the others do, it misbehaves by the names of its things: "later" is put off, "chatty"
// prints, "crash" panics, "hang" waits until it is stopped. With KINDS_TYPES in its environment it has so many more resource
// types, with ten kilobytes of description each.
type raw struct {
	// What a host of this protocol level never asks for.
	tfprotov6.ProviderServer
	kind    string
	stop    sync.Once
	stopped chan struct{}
}

func newRaw(kind string) *raw { return &raw{kind: kind, stopped: make(chan struct{})} }

type (
	values  = map[string]tftypes.Value
	dynamic = *tfprotov6.DynamicValue
)

func attribute(name string, ty tftypes.Type, how string) *tfprotov6.SchemaAttribute {
	return &tfprotov6.SchemaAttribute{
		Name: name, Type: ty,
		Required: how == "required", Optional: how == "optional", Computed: how == "computed",
	}
}

func plain(version int64, attributes ...*tfprotov6.SchemaAttribute) *tfprotov6.Schema {
	return &tfprotov6.Schema{Version: version, Block: &tfprotov6.SchemaBlock{Attributes: attributes}}
}

var (
	configSchema = plain(0, attribute("greeting", tftypes.String, "optional"))
	thingSchema  = plain(1,
		attribute("id", tftypes.String, "computed"), attribute("name", tftypes.String, "required"),
		attribute("size", tftypes.Number, "optional"), attribute("note", tftypes.String, "computed"))
	oldSchema    = plain(0, attribute("id", tftypes.String, "computed"), attribute("name", tftypes.String, "required"))
	lookupSchema = plain(0, attribute("name", tftypes.String, "required"), attribute("result", tftypes.String, "computed"))
	tokenSchema  = plain(0, attribute("name", tftypes.String, "required"), attribute("value", tftypes.String, "computed"))
	// Blocks that have nothing but blocks in them, and a value of any type.
	nestSchema = &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{
		Attributes: []*tfprotov6.SchemaAttribute{
			attribute("id", tftypes.String, "computed"), attribute("any", tftypes.DynamicPseudoType, "optional"),
		},
		BlockTypes: []*tfprotov6.SchemaNestedBlock{{
			TypeName: "outer", Nesting: tfprotov6.SchemaNestedBlockNestingModeList,
			Block: &tfprotov6.SchemaBlock{BlockTypes: []*tfprotov6.SchemaNestedBlock{
				{
					TypeName: "left", Nesting: tfprotov6.SchemaNestedBlockNestingModeList,
					Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{attribute("v", tftypes.String, "optional")}},
				},
				{
					TypeName: "right", Nesting: tfprotov6.SchemaNestedBlockNestingModeSingle,
					Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{attribute("v", tftypes.String, "optional")}},
				},
			}},
		}},
	}}
)

func (r *raw) schema(ty string) *tfprotov6.Schema {
	switch strings.TrimPrefix(ty, r.kind+"_") {
	case "thing":
		return thingSchema
	case "old":
		return oldSchema
	case "nest":
		return nestSchema
	}
	return nil
}

func (r *raw) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	text := &tfprotov6.FunctionParameter{Name: "separator", Type: tftypes.String}
	resp := &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &tfprotov6.ServerCapabilities{
			GetProviderSchemaOptional: os.Getenv("KINDS_TYPES") != "", MoveResourceState: true, PlanDestroy: true,
		},
		Provider: configSchema,
		ResourceSchemas: map[string]*tfprotov6.Schema{
			r.kind + "_thing": thingSchema, r.kind + "_old": oldSchema, r.kind + "_nest": nestSchema,
		},
		DataSourceSchemas:        map[string]*tfprotov6.Schema{r.kind + "_lookup": lookupSchema},
		EphemeralResourceSchemas: map[string]*tfprotov6.Schema{r.kind + "_token": tokenSchema},
		Functions: map[string]*tfprotov6.Function{"together": {
			Parameters:        []*tfprotov6.FunctionParameter{text},
			VariadicParameter: &tfprotov6.FunctionParameter{Name: "texts", Type: tftypes.String},
			Return:            &tfprotov6.FunctionReturn{Type: tftypes.String},
		}},
	}
	more, _ := strconv.Atoi(os.Getenv("KINDS_TYPES"))
	words := strings.Repeat("words of a description, ", 8)
	for i := range more {
		schema := plain(0, attribute("id", tftypes.String, "computed"))
		for j := range 40 {
			one := attribute(fmt.Sprintf("argument_%d_%d", i, j), tftypes.List{ElementType: tftypes.String}, "optional")
			one.Description = fmt.Sprint(words, i, j)
			schema.Block.Attributes = append(schema.Block.Attributes, one)
		}
		resp.ResourceSchemas[fmt.Sprintf("%s_of_many_%d", r.kind, i)] = schema
	}
	return resp, nil
}

func (r *raw) ValidateProviderConfig(_ context.Context, req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config}, nil
}

func (r *raw) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (r *raw) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	r.stop.Do(func() { close(r.stopped) })
	return &tfprotov6.StopProviderResponse{}, nil
}

func (r *raw) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (r *raw) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (r *raw) ValidateEphemeralResourceConfig(context.Context, *tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{}, nil
}

// An object's attributes; none if there is no object.
func read(value dynamic, schema *tfprotov6.Schema) (values, error) {
	if value == nil || schema == nil {
		return nil, errors.New("nothing was sent")
	}
	object, err := value.Unmarshal(schema.ValueType())
	var attributes values
	if err == nil && !object.IsNull() {
		err = object.As(&attributes)
	}
	return attributes, err
}

func write(attributes values, schema *tfprotov6.Schema) (dynamic, error) {
	ty := schema.ValueType()
	object := tftypes.NewValue(ty, nil)
	if attributes != nil {
		object = tftypes.NewValue(ty, attributes)
	}
	value, err := tfprotov6.NewDynamicValue(ty, object)
	return &value, err
}

func text(attributes values, name string) string {
	var out string
	if value, ok := attributes[name]; ok && value.IsKnown() && !value.IsNull() {
		_ = value.As(&out)
	}
	return out
}

func str(text string) tftypes.Value { return tftypes.NewValue(tftypes.String, text) }

func unknown() tftypes.Value { return tftypes.NewValue(tftypes.String, tftypes.UnknownValue) }

func thing(id, name string) values {
	return values{"id": str(id), "name": str(name), "size": tftypes.NewValue(tftypes.Number, nil), "note": str(noteOf(name))}
}

// As from a provider that is older than identities.
func (r *raw) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return nil, status.Error(codes.Unimplemented, "unknown method GetResourceIdentitySchemas")
}

func (r *raw) UpgradeResourceState(_ context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	schema := r.schema(req.TypeName)
	var stored map[string]any
	if err := json.Unmarshal(req.RawState.JSON, &stored); err != nil {
		return nil, err
	}
	if title, ok := stored["title"]; ok && req.Version == 0 && schema == thingSchema {
		stored["name"] = title
		delete(stored, "title")
	}
	again, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	object, err := (&tfprotov6.RawState{JSON: again}).Unmarshal(schema.ValueType())
	if err != nil {
		return nil, err
	}
	value, err := tfprotov6.NewDynamicValue(schema.ValueType(), object)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &value}, err
}

func (r *raw) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private}, nil
}

func (r *raw) PlanResourceChange(_ context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	schema := r.schema(req.TypeName)
	prior, err := read(req.PriorState, schema)
	if err != nil {
		return nil, err
	}
	planned, err := read(req.ProposedNewState, schema)
	if err != nil {
		return nil, err
	}
	resp := &tfprotov6.PlanResourceChangeResponse{PlannedPrivate: req.PriorPrivate}
	name := text(planned, "name")
	if name == "later" {
		resp.Deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonResourceConfigUnknown}
	}
	fixed := schema == thingSchema || schema == oldSchema
	switch {
	case planned == nil:
	case prior == nil:
		planned["id"] = unknown()
	case fixed && !prior["name"].Equal(planned["name"]):
		planned["id"] = unknown()
		resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("name")}
	}
	if schema == thingSchema && planned != nil && !planned["id"].IsKnown() {
		planned["note"] = unknown()
	}
	resp.PlannedState, err = write(planned, schema)
	return resp, err
}

func (r *raw) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	schema := r.schema(req.TypeName)
	planned, err := read(req.PlannedState, schema)
	if err != nil {
		return nil, err
	}
	resp := &tfprotov6.ApplyResourceChangeResponse{Private: []byte("private")}
	name := text(planned, "name")
	switch name {
	case "chatty":
		fmt.Println("a line on standard output")
		fmt.Fprintln(os.Stderr, "a line on standard error")
		fmt.Fprintln(os.Stderr, "[WARN] a warning on standard error")
	case "crash":
		go func() { panic("the thing broke") }()
		time.Sleep(time.Minute)
	case "hang":
		if path := os.Getenv("KINDS_STARTED"); path != "" {
			_ = os.WriteFile(path, nil, 0o600)
		}
		<-r.stopped
		resp.Diagnostics = []*tfprotov6.Diagnostic{{
			Severity: tfprotov6.DiagnosticSeverityError, Summary: "Stopped", Detail: "It was asked to stop.",
		}}
		resp.NewState, err = write(nil, schema)
		return resp, err
	}
	if planned != nil && !planned["id"].IsKnown() {
		id, note := made(name)
		planned["id"] = str(id)
		if schema == thingSchema {
			planned["note"] = str(note)
		}
	}
	resp.NewState, err = write(planned, schema)
	return resp, err
}

func (r *raw) ImportResourceState(_ context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	state, err := write(thing(req.ID, "imported"), thingSchema)
	one := &tfprotov6.ImportedResource{TypeName: req.TypeName, State: state, Private: []byte("private")}
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{one}}, err
}

func (r *raw) MoveResourceState(_ context.Context, req *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	var stored struct{ ID, Name string }
	if err := json.Unmarshal(req.SourceState.JSON, &stored); err != nil || req.SourceTypeName != r.kind+"_old" {
		return nil, errors.Join(err, fmt.Errorf("a %s of %s cannot be taken over", req.SourceTypeName, req.SourceProviderAddress))
	}
	state, err := write(thing(stored.ID, stored.Name), thingSchema)
	return &tfprotov6.MoveResourceStateResponse{TargetState: state, TargetPrivate: req.SourcePrivate}, err
}

func (r *raw) ReadDataSource(_ context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	config, err := read(req.Config, lookupSchema)
	if err != nil {
		return nil, err
	}
	config["result"] = str("result of " + text(config, "name"))
	state, err := write(config, lookupSchema)
	return &tfprotov6.ReadDataSourceResponse{State: state}, err
}

func (r *raw) OpenEphemeralResource(_ context.Context, req *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	config, err := read(req.Config, tokenSchema)
	if err != nil {
		return nil, err
	}
	config["value"] = str("token of " + text(config, "name"))
	result, err := write(config, tokenSchema)
	return &tfprotov6.OpenEphemeralResourceResponse{Result: result, Private: []byte("open"), RenewAt: soon()}, err
}

func (r *raw) RenewEphemeralResource(_ context.Context, req *tfprotov6.RenewEphemeralResourceRequest) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	return &tfprotov6.RenewEphemeralResourceResponse{Private: req.Private, RenewAt: soon()}, open(req.Private)
}

func (r *raw) CloseEphemeralResource(_ context.Context, req *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	return &tfprotov6.CloseEphemeralResourceResponse{}, open(req.Private)
}

func open(private []byte) error {
	if string(private) != "open" {
		return fmt.Errorf("%q is not what was given at the opening", private)
	}
	return nil
}

func (r *raw) CallFunction(_ context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	texts := make([]string, 0, len(req.Arguments))
	for _, argument := range req.Arguments {
		value, err := argument.Unmarshal(tftypes.String)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text(values{"": value}, ""))
	}
	result, err := tfprotov6.NewDynamicValue(tftypes.String, str(strings.Join(texts[1:], texts[0])))
	return &tfprotov6.CallFunctionResponse{Result: &result}, err
}
