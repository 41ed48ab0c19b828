// A provider with a state store on terraform-plugin-framework: each state is a file of a directory that the provider's
// configuration names, and a lock is a file beside it. The argument "fault" makes the store misbehave, for tests of what the core
// makes of that. What is asked for goes to the file that KEEP_LOG names.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	pschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/statestore"
	"github.com/hashicorp/terraform-plugin-framework/statestore/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	debug := flag.Bool("debug", false, "wait for somebody to attach")
	flag.Parse()
	err := providerserver.Serve(context.Background(), func() provider.Provider { return &keep{} }, providerserver.ServeOpts{
		Address:         "example.com/test/keep",
		ProtocolVersion: 6,
		Debug:           *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}

// note appends a line to the log.
func note(format string, arguments ...any) {
	name := os.Getenv("KEEP_LOG")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintf(file, format+"\n", arguments...)
}

type keep struct{}

func (p *keep) Metadata(_ context.Context, _ provider.MetadataRequest, r *provider.MetadataResponse) {
	r.TypeName = "keep"
}

func (p *keep) Schema(_ context.Context, _ provider.SchemaRequest, r *provider.SchemaResponse) {
	r.Schema = pschema.Schema{Attributes: map[string]pschema.Attribute{
		"root": pschema.StringAttribute{Required: true},
	}}
}

func (p *keep) Configure(ctx context.Context, q provider.ConfigureRequest, r *provider.ConfigureResponse) {
	var config struct {
		Root types.String `tfsdk:"root"`
	}
	r.Diagnostics.Append(q.Config.Get(ctx, &config)...)
	if root := config.Root.ValueString(); root == "nowhere" {
		r.Diagnostics.AddError("No such root", "The root cannot be nowhere.")
	} else {
		r.StateStoreData = root
	}
}

func (p *keep) DataSources(context.Context) []func() datasource.DataSource { return nil }
func (p *keep) Resources(context.Context) []func() resource.Resource       { return nil }
func (p *keep) StateStores(context.Context) []func() statestore.StateStore {
	return []func() statestore.StateStore{func() statestore.StateStore { return &dir{} }}
}

// where is a configured store.
type where struct{ dir, fault string }

type dir struct{ where }

func (s *dir) Metadata(_ context.Context, q statestore.MetadataRequest, r *statestore.MetadataResponse) {
	r.TypeName = q.ProviderTypeName + "_dir"
}

func (s *dir) Schema(_ context.Context, _ statestore.SchemaRequest, r *statestore.SchemaResponse) {
	r.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"path":  schema.StringAttribute{Required: true},
		"fault": schema.StringAttribute{Optional: true},
	}}
}

func (s *dir) ValidateConfig(ctx context.Context, q statestore.ValidateConfigRequest, r *statestore.ValidateConfigResponse) {
	var config struct {
		Path  types.String `tfsdk:"path"`
		Fault types.String `tfsdk:"fault"`
	}
	r.Diagnostics.Append(q.Config.Get(ctx, &config)...)
	if strings.Contains(config.Path.ValueString(), "..") {
		r.Diagnostics.AddError("Path leads elsewhere", "A path must be below the root.")
	}
}

func (s *dir) Initialize(ctx context.Context, q statestore.InitializeRequest, r *statestore.InitializeResponse) {
	var config struct {
		Path  types.String `tfsdk:"path"`
		Fault types.String `tfsdk:"fault"`
	}
	r.Diagnostics.Append(q.Config.Get(ctx, &config)...)
	root, _ := q.ProviderData.(string)
	r.StateStoreData = where{filepath.Join(root, config.Path.ValueString()), config.Fault.ValueString()}
}

func (s *dir) Configure(_ context.Context, q statestore.ConfigureRequest, r *statestore.ConfigureResponse) {
	if data, ok := q.StateStoreData.(where); ok {
		s.where = data
	}
}

func (s *dir) file(id string) string { return filepath.Join(s.dir, id+".state") }
func (s *dir) lock(id string) string { return filepath.Join(s.dir, id+".lock") }

func (s *dir) GetStates(_ context.Context, _ statestore.GetStatesRequest, r *statestore.GetStatesResponse) {
	note("list")
	names, err := filepath.Glob(filepath.Join(s.dir, "*.state"))
	if err != nil {
		r.Diagnostics.AddError("Cannot list", err.Error())
	}
	for _, name := range names {
		r.StateIDs = append(r.StateIDs, strings.TrimSuffix(filepath.Base(name), ".state"))
	}
}

func (s *dir) DeleteState(_ context.Context, q statestore.DeleteStateRequest, r *statestore.DeleteStateResponse) {
	note("delete %s", q.StateID)
	if err := os.Remove(s.file(q.StateID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Diagnostics.AddError("Cannot delete", err.Error())
	}
}

func (s *dir) Lock(_ context.Context, q statestore.LockRequest, r *statestore.LockResponse) {
	note("lock %s", q.StateID)
	info := statestore.NewLockInfo(q)
	text, _ := json.Marshal(info)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		r.Diagnostics.AddError("Cannot lock", err.Error())
		return
	}
	file, err := os.OpenFile(s.lock(q.StateID), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		var other statestore.LockInfo
		text, _ := os.ReadFile(s.lock(q.StateID))
		_ = json.Unmarshal(text, &other)
		r.Diagnostics.Append(statestore.WorkspaceAlreadyLockedDiagnostic(q, other))
		return
	}
	if err != nil {
		r.Diagnostics.AddError("Cannot lock", err.Error())
		return
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		r.Diagnostics.AddError("Cannot lock", err.Error())
	}
	r.LockID = info.ID
}

func (s *dir) Unlock(_ context.Context, q statestore.UnlockRequest, r *statestore.UnlockResponse) {
	note("unlock %s", q.StateID)
	var held statestore.LockInfo
	text, err := os.ReadFile(s.lock(q.StateID))
	if err == nil {
		err = json.Unmarshal(text, &held)
	}
	if err != nil || held.ID != q.LockID {
		r.Diagnostics.AddError("Not locked", fmt.Sprintf("There is no lock %q of %q.", q.LockID, q.StateID))
		return
	}
	if err := os.Remove(s.lock(q.StateID)); err != nil {
		r.Diagnostics.AddError("Cannot unlock", err.Error())
	}
}

func (s *dir) Read(_ context.Context, q statestore.ReadRequest, r *statestore.ReadResponse) {
	note("read %s", q.StateID)
	text, err := os.ReadFile(s.file(q.StateID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Diagnostics.AddError("Cannot read", err.Error())
	}
	r.StateBytes = text
}

func (s *dir) Write(_ context.Context, q statestore.WriteRequest, r *statestore.WriteResponse) {
	note("write %s %d", q.StateID, len(q.StateBytes))
	switch {
	case s.fault == "die" || os.Getenv("KEEP_FAULT") == "die":
		os.Exit(3)
	case s.fault == "refuse" || os.Getenv("KEEP_FAULT") == "refuse":
		r.Diagnostics.AddError("The disk is full", "Nothing can be written now.")
		return
	}
	if err := os.WriteFile(s.file(q.StateID), q.StateBytes, 0o600); err != nil {
		r.Diagnostics.AddError("Cannot write", err.Error())
	}
}
