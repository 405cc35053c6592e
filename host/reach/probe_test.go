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

// patience is what an answer has. Without a grant there is nothing to wait for.
const patience = 10 * time.Second

func probeMain(args []string) {
	tcp, udp, abstract := args[0], args[1], args[2]
	if c, err := net.DialTimeout("tcp", tcp, patience); err == nil {
		fmt.Println("tcp")
		c.Close()
	}
	if c, err := net.Dial("udp", udp); err == nil {
		if _, err := c.Write([]byte("x")); err == nil {
			c.SetReadDeadline(time.Now().Add(patience))
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
