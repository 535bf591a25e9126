# A guest of 512 bytes. Prints a line on COM1, arms the ACPI power button and polls it, powers off
# through ACPI S5 (ports of QEMU's PIIX4, machine "pc"). tests/lab/tiny.py fills in the last bytes.
# mode 0 graceful: obeys the button; 1 ignore: does not; 2 late: arms it after `delay` seconds;
# 3 selfoff: powers itself off after them; 4 selfreboot: resets itself after them; 5 chatty: prints
# its tag for ever; 6 stubborn: resets itself when the button is pressed; 7 writer: writes 12 MiB
# to its disk behind the first, then it is as mode 0.
.code16
.globl _start
_start:
  ljmp $0,$1f
1: xor %ax,%ax; mov %ax,%ds; mov %ax,%es; mov %ax,%ss; mov $0x7c00,%sp
  sti
  mov $ready,%si
  call puts
  mov $tag,%si
  call puts
  mov mode,%al
  cmp $1,%al
  je idle
  cmp $0,%al
  je arm
  cmp $6,%al
  je arm
  cmp $5,%al
  je chat
  cmp $7,%al
  je fill
  movzwl delay,%ecx
  imul $18,%ecx                # the BIOS counts 18 ticks a second at 0x46c
  add 0x46c,%ecx
2: hlt
  cmp %ecx,0x46c
  jb 2b
  mov mode,%al
  cmp $3,%al
  je off
  cmp $4,%al
  je reset
arm:
  mov $0x600,%dx; mov $0xffff,%ax; outw %ax,%dx     # PM1_STS: clear
  mov $0x602,%dx; mov $0x0100,%ax; outw %ax,%dx     # PM1_EN: power button
  mov $armed,%si
  call puts
3: hlt
  mov $0x600,%dx; inw %dx,%ax; test $0x0100,%ax
  jz 3b
  mov $bye,%si
  call puts
  cmpb $6,mode
  je reset
off:
  mov $0x604,%dx; mov $0x2000,%ax; outw %ax,%dx     # PM1_CNT: sleep enable, S5
idle: hlt
  jmp idle
reset:
  mov $0x64,%dx; mov $0xfe,%al; outb %al,%dx
  jmp idle
chat:
  mov $tag,%si
  call puts
  jmp chat
fill:
  mov $packet,%si
  mov $0x4300,%ax; mov $0x80,%dl; int $0x13         # write 64 KiB
  addl $128,packet+8
  cmpl $26624,packet+8
  jb fill
  jmp arm
puts: lodsb; test %al,%al; jz 5f
  mov %al,%bl
  mov $0x3fd,%dx
4: inb %dx,%al; test $0x20,%al; jz 4b
  mov $0x3f8,%dx; mov %bl,%al; outb %al,%dx
  jmp puts
5: ret
ready: .asciz "\r\nTINY GUEST ready "
armed: .asciz "armed\r\n"
bye: .asciz "power button, off\r\n"
packet: .byte 16,0; .word 127,0,0x1000; .long 2048,0   # LBA 2048 on, 127 sectors from 0x10000
.org 440
mode: .byte 0
delay: .word 0
.org 448
tag: .asciz "\r\n"
.org 510
.word 0xaa55
