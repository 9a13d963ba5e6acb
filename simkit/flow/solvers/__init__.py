"""Direct solvers of the linear equations that arise in every time step: pressure and implicit viscosity."""
