// The same small provider, made in every way the official Go modules offer, so that one test can be run against all of them:
// on the raw protocol, on the framework, on version 2 of the SDK, and put together of two. What the executable is called
// says which one it is: terraform-provider-raw5, -raw6, -frame5, -frame6, -sdk, -mux5, -mux6.
//
// Its things have a name, which cannot be changed, and a size, which can. One whose name begins with "slow" takes more than a
// second to make.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-mux/tf5muxserver"
	"github.com/hashicorp/terraform-plugin-mux/tf5to6server"
	"github.com/hashicorp/terraform-plugin-mux/tf6muxserver"
	"github.com/hashicorp/terraform-plugin-mux/tf6to5server"
)

func main() {
	if os.Getenv("KINDS_NETWORK") == "tcp" {
		overTCP()
		return
	}
	debug := flag.Bool("debug", false, "run by hand, and print how to be reached")
	flag.Parse()
	kind := strings.TrimPrefix(filepath.Base(os.Args[0]), "terraform-provider-")
	kind, _, _ = strings.Cut(kind, "_")
	if err := serve(kind, *debug); err != nil {
		log.Fatal(err)
	}
	// Only who is asked to end comes here; who is killed does not.
	if path := os.Getenv("KINDS_GOODBYE"); path != "" {
		_ = os.WriteFile(path, []byte(kind+"\n"), 0o600)
	}
}

func serve(kind string, debug bool) error {
	ctx := context.Background()
	address := "example.com/test/" + kind
	raw := func() tfprotov6.ProviderServer { return newRaw(kind) }
	old := func() tfprotov5.ProviderServer { return onSDK(kind, kind != "sdk").GRPCProvider() }
	var five tfprotov5.ProviderServer
	var six tfprotov6.ProviderServer
	var err error
	switch kind {
	case "raw5":
		five, err = tf6to5server.DowngradeServer(ctx, raw)
	case "raw6":
		six = raw()
	case "frame5":
		five = providerserver.NewProtocol5(&frame{kind: kind})()
	case "frame6":
		six = providerserver.NewProtocol6(&frame{kind: kind})()
	case "sdk":
		five = old()
	case "mux5":
		var all interface {
			ProviderServer() tfprotov5.ProviderServer
		}
		all, err = tf5muxserver.NewMuxServer(ctx, old, providerserver.NewProtocol5(&frame{kind: kind, half: true}))
		if err == nil {
			five = all.ProviderServer()
		}
	case "mux6":
		var all interface {
			ProviderServer() tfprotov6.ProviderServer
		}
		upgraded := func() tfprotov6.ProviderServer {
			server, _ := tf5to6server.UpgradeServer(ctx, old)
			return server
		}
		all, err = tf6muxserver.NewMuxServer(ctx, upgraded, providerserver.NewProtocol6(&frame{kind: kind, half: true}))
		if err == nil {
			six = all.ProviderServer()
		}
	default:
		log.Fatalf("there is no kind %q", kind)
	}
	if err != nil {
		return err
	}
	if five != nil {
		var options []tf5server.ServeOpt
		if debug {
			options = append(options, tf5server.WithManagedDebug())
		}
		return tf5server.Serve(address, func() tfprotov5.ProviderServer { return five }, options...)
	}
	var options []tf6server.ServeOpt
	if debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	return tf6server.Serve(address, func() tfprotov6.ProviderServer { return six }, options...)
}

// What a new thing's computed values are.
func made(name string) (id, note string) {
	if strings.HasPrefix(name, "slow") {
		time.Sleep(1200 * time.Millisecond)
	}
	return "id-of-" + name, noteOf(name)
}

func noteOf(name string) string { return "note of " + name }

// When an ephemeral resource wants to be renewed.
func soon() time.Time { return time.Now().Add(400 * time.Millisecond) }
