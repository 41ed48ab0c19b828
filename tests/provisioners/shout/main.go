// A provisioner as somebody else writes it in Go. The SDKs for Go have no provisioners any more, so it speaks the protocol itself,
// on the modules that they are made of.
package main

import (
	"context"
	"fmt"
	"net/rpc"
	"sort"
	"strings"

	"github.com/hashicorp/go-plugin"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// raw is a message as it is on the wire.
type raw []byte

// codec passes messages of this kind through, and leaves all others to the usual way.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) ([]byte, error) {
	if message, ok := v.(*raw); ok {
		return *message, nil
	}
	return proto.Marshal(v.(proto.Message))
}

func (codec) Unmarshal(data []byte, v any) error {
	if message, ok := v.(*raw); ok {
		*message = append(raw(nil), data...)
		return nil
	}
	return proto.Unmarshal(data, v.(proto.Message))
}

// field appends a field with bytes.
func field(out []byte, number protowire.Number, data []byte) []byte {
	out = protowire.AppendTag(out, number, protowire.BytesType)
	return protowire.AppendBytes(out, data)
}

// number appends a field with a number.
func number(out []byte, n protowire.Number, value uint64) []byte {
	out = protowire.AppendTag(out, n, protowire.VarintType)
	return protowire.AppendVarint(out, value)
}

// get finds a field with bytes.
func get(message []byte, wanted protowire.Number) []byte {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if kind == protowire.BytesType && number == wanted {
			data, _ := protowire.ConsumeBytes(message)
			return data
		}
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			return nil
		}
		message = message[n:]
	}
	return nil
}

func schema() raw {
	attribute := field(nil, 1, []byte("inline"))
	attribute = field(attribute, 2, []byte(`["list","string"]`))
	attribute = number(attribute, 4, 1)
	block := field(nil, 2, attribute)
	return field(nil, 1, field(nil, 2, block))
}

func provision(stream grpc.ServerStream) error {
	var request raw
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	say := func(text string) {
		message := raw(field(nil, 1, []byte(text)))
		_ = stream.SendMsg(&message)
	}
	fail := func(text string) {
		diagnostic := number(nil, 1, 1)
		diagnostic = field(diagnostic, 2, []byte(text))
		message := raw(field(nil, 2, diagnostic))
		_ = stream.SendMsg(&message)
	}
	connection, err := msgpack.Unmarshal(get(get(request, 2), 1), cty.Map(cty.String))
	if err != nil {
		fail("the connection: " + err.Error())
		return nil
	}
	var told []string
	if !connection.IsNull() {
		for name, value := range connection.AsValueMap() {
			if !value.IsNull() {
				told = append(told, name+"="+value.AsString())
			}
		}
	}
	sort.Strings(told)
	say("connection " + strings.Join(told, " "))
	config, err := msgpack.Unmarshal(get(get(request, 1), 1), cty.Object(map[string]cty.Type{"inline": cty.List(cty.String)}))
	if err != nil {
		fail("the configuration: " + err.Error())
		return nil
	}
	for _, line := range config.GetAttr("inline").AsValueSlice() {
		if line.AsString() == "fail" {
			fail("told to fail")
			return nil
		}
		say("GO " + strings.ToUpper(line.AsString()))
	}
	return nil
}

func unary(name string, answer func() raw) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var request raw
			if err := decode(&request); err != nil {
				return nil, err
			}
			message := answer()
			return &message, nil
		},
	}
}

type shout struct{ plugin.Plugin }

func (shout) Server(*plugin.MuxBroker) (any, error) { return nil, fmt.Errorf("not over net/rpc") }

func (shout) Client(*plugin.MuxBroker, *rpc.Client) (any, error) {
	return nil, fmt.Errorf("not over net/rpc")
}

func (shout) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	empty := func() raw { return nil }
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "tfplugin5.Provisioner",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			unary("GetSchema", schema),
			unary("ValidateProvisionerConfig", empty),
			unary("Stop", empty),
		},
		Streams: []grpc.StreamDesc{{
			StreamName:    "ProvisionResource",
			ServerStreams: true,
			Handler:       func(_ any, stream grpc.ServerStream) error { return provision(stream) },
		}},
	}, nil)
	return nil
}

func (shout) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("only a server")
}

func main() {
	encoding.RegisterCodec(codec{})
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  5,
			MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
			MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
		},
		VersionedPlugins: map[int]plugin.PluginSet{5: {"provisioner": shout{}}},
		GRPCServer:       plugin.DefaultGRPCServer,
	})
}
