package reach

import (
	"fmt"
	"net"
	"os"
	"time"
)

// probeVerb makes the test binary try, inside a sandbox, what must not work
// there: it prints one word for each thing that did.
const probeVerb = "__probe"

func probeMain(args []string) {
	tcp, udp, abstract := args[0], args[1], args[2]
	if c, err := net.DialTimeout("tcp", tcp, time.Second); err == nil {
		fmt.Println("tcp")
		c.Close()
	}
	if c, err := net.Dial("udp", udp); err == nil {
		if _, err := c.Write([]byte("x")); err == nil {
			c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); err == nil {
				fmt.Println("udp")
			}
		}
		c.Close()
	}
	if c, err := net.Dial("unix", abstract); err == nil {
		fmt.Println("abstract")
		c.Close()
	}
	probeNetlink()
	fmt.Fprintln(os.Stderr, "probed")
}
