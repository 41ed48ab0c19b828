package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// Plugins listen on Unix sockets wherever there are any. Here another process of this program does, and this one passes on
// what comes to a TCP port, TLS and all.
func overTCP() {
	// The signal comes when the thread ends that has started the process.
	runtime.LockOSThread()
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Args[0] = os.Args[0]
	child.Env = append(os.Environ(), "KINDS_NETWORK=")
	child.Stderr = os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	reader := bufio.NewReader(stdout)
	line, err := reader.ReadString('\n')
	fields := strings.Split(strings.TrimSpace(line), "|")
	if err != nil || len(fields) < 5 || fields[2] != "unix" {
		fmt.Print(line)
		log.Fatalf("no handshake: %v", err)
	}
	socket := fields[3]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fields[2], fields[3] = "tcp", listener.Addr().String()
	fmt.Println(strings.Join(fields, "|"))
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket)
			if err != nil {
				near.Close()
				continue
			}
			pass := func(from, to net.Conn) {
				_, _ = io.Copy(to, from)
				to.Close()
			}
			go pass(near, far)
			go pass(far, near)
		}
	}()
	_, _ = io.Copy(os.Stdout, reader)
	if err := child.Wait(); err != nil {
		log.Fatal(err)
	}
}
