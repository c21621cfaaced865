graph():
    %x : torch.Tensor [#users=1] = placeholder[target=x]
    %y : typing.Optional[torch.Tensor] [#users=1] = placeholder[target=y](default=None)
    %n : int [#users=1] = placeholder[target=n](default=-1)
    %mode : str [#users=0] = placeholder[target=mode](default=a b)
    %sizes : typing.Tuple[int, ...] [#users=0] = placeholder[target=sizes](default=(1, 2))
    %eps : [#users=1] = placeholder[target=eps](default=1e-05)
    %mul : [#users=1] = call_function[target=operator.mul](args = (%x, %n), kwargs = {})
    %add : [#users=1] = call_function[target=operator.add](args = (%mul, %eps), kwargs = {})
    return (add, y)
